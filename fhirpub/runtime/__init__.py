"""The process: its clock, logging and metrics, staged execution, worker supervision."""
