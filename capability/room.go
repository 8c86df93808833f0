package capability

// Room is how many bytes the stores of one owner, and all stores of a file, may take on disk. 0 means no limit.
type Room struct{ Owner, All int64 }
