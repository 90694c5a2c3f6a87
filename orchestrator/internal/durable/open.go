package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular says that a path leads to something that is no file to read.
var ErrNotRegular = errors.New("not a regular file")

// OpenRegular opens the file at path, which a person named, for reading. It
// follows links and never waits: a named pipe would hold its opener until
// somebody writes to it, and no context ends that. What is neither a regular file
// nor the null device is [ErrNotRegular]; every error is an [fs.PathError]. The caller closes the file.
func OpenRegular(path string) (*os.File, error) {
	// A device is not even opened: some act on that.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := regular(path, info); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(path, info) // it may be another one by now
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// ReadRegular returns the content of the file at path as [OpenRegular] opens
// it. One of more than limit bytes is an error.
func ReadRegular(path string, limit int64) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("larger than %d KiB", limit>>10)}
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// regular returns nil for a regular file, and otherwise says what it is.
func regular(path string, info fs.FileInfo) error {
	var what string
	switch mode := info.Mode(); {
	case mode.IsRegular(), isNull(info):
		return nil
	case mode.IsDir():
		what = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	default:
		what = "something else"
	}
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w but %s", ErrNotRegular, what)}
}

// isNull reports whether a file is the null device, by which people name an
// empty file.
func isNull(info fs.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(null, info)
}
