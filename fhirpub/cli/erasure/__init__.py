"""Commands that erase resources, put them on hold, and erase again what a backup brought back."""
