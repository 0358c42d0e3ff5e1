"""Ask many questions: answer them into a file, or judge the answers."""
