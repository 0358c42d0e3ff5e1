"""Training and calibration of evaluators on your own data."""
