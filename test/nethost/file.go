package nethost

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ReadFile returns the content of a file of the host. Symbolic links lead where
// they lead on the host.
func (h *Host) ReadFile(path string) ([]byte, error) {
	f, err := h.open(path, unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// WriteFile replaces the content of a file of the host, or makes it, owned by
// root. Its directory must exist.
func (h *Host) WriteFile(path string, data []byte, mode fs.FileMode) error {
	f, err := h.open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, mode.Perm())
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Chmod(mode), f.Close())
}

// Exists reports whether a path exists on the host, links followed.
func (h *Host) Exists(path string) (bool, error) {
	f, err := h.open(path, unix.O_PATH, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

// open opens a path with the host's root as the root of every step of the way,
// so that an absolute link on the host never leads to a file of this machine.
func (h *Host) open(path string, flags int, mode fs.FileMode) (*os.File, error) {
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", h.holder.pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open root of %s: %w", h.name, err)
	}
	defer unix.Close(root)
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Mode: uint64(mode), Resolve: unix.RESOLVE_IN_ROOT}
	for {
		fd, err := unix.Openat2(root, path, &how)
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
			continue // something was renamed meanwhile
		case err != nil:
			return nil, &fs.PathError{Op: "open", Path: h.name + ":" + path, Err: err}
		}
		return os.NewFile(uintptr(fd), h.name+":"+path), nil
	}
}
