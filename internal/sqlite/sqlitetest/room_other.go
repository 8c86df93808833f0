//go:build !linux

package sqlitetest

// room is how many bytes are free where a folder is; elsewhere there is no folder in memory.
func room(string) uint64 { return 0 }
