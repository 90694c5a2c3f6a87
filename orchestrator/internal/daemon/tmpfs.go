package daemon

import "golang.org/x/sys/unix"

// inMemory reports whether a directory lies on a file system that is RAM.
func inMemory(dir string) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false
	}
	return st.Type == unix.TMPFS_MAGIC || st.Type == unix.RAMFS_MAGIC
}
