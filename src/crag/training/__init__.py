"""Training and calibration of evaluators, for anyone's data."""
