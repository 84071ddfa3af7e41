"""Operations that erase resources, and that put them on hold."""
