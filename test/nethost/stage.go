package nethost

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A stage is a directory with the files in which a host differs from this
// machine; host.sh copies it over the host's root.
type stage struct {
	root string
	err  error // the first that happened; later calls do nothing
}

// stageHost writes the stage of h below dir.
func stageHost(dir string, h *Host, labKey string) error {
	s := &stage{root: dir}
	s.dir("/", 0o755)
	s.dir("/tmp", 0o777|fs.ModeSticky)
	s.dir("/var/tmp", 0o777|fs.ModeSticky)
	s.dir("/run/sshd", 0o755)
	s.dir("/run/lock", 0o777|fs.ModeSticky)
	s.dir("/run/machine", 0o700) // where pivot_root puts the old root, for a moment
	s.devices()
	s.dir("/root", 0o700)
	s.file("/etc/hostname", h.name+"\n", 0o644)
	s.file("/etc/hosts", "127.0.0.1 localhost\n"+h.address+" "+h.name+"\n", 0o644)
	s.file("/etc/resolv.conf", "", 0o644) // no resolver: an answer at once
	s.file("/etc/machine-id", machineID()+"\n", 0o444)
	s.file("/etc/sudoers", sudoers, 0o440)
	s.dir("/etc/sudoers.d", 0o750)
	s.file(sshdConfigPath, h.sshdConfig(), 0o644)
	for t, k := range h.keys {
		s.file(hostKeyPath(t), string(k.file), 0o600)
	}
	if h.anyKey {
		s.file(anyKeyPath, "#!/bin/sh\necho \"$1 $2\"\n", 0o755)
	}
	s.accounts(h, strings.Join(append([]string{labKey}, h.authorizedKeys...), "\n")+"\n")
	return s.err
}

// devices writes /dev: nothing that leads to this machine's hardware.
func (s *stage) devices() {
	s.dir("/dev", 0o755)
	for name, number := range map[string][2]uint32{
		"null": {1, 3}, "zero": {1, 5}, "full": {1, 7}, "random": {1, 8}, "urandom": {1, 9}, "tty": {5, 0},
	} {
		path := filepath.Join(s.root, "dev", name)
		if s.err == nil {
			s.err = unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(number[0], number[1])))
		}
		if s.err == nil {
			s.err = os.Chmod(path, 0o666)
		}
	}
	for name, target := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2",
	} {
		if s.err == nil {
			s.err = os.Symlink(target, filepath.Join(s.root, "dev", name))
		}
	}
}

// accounts writes the account database. The login user gets the keys; every
// other user than root gets passwordless sudo, too.
func (s *stage) accounts(h *Host, authorizedKeys string) {
	a, err := systemAccounts()
	if err != nil {
		s.err = err
		return
	}
	if h.user == "root" {
		s.authorize("/root", 0, authorizedKeys)
	}
	for _, name := range h.people {
		id := a.add(name)
		home := "/home/" + name
		s.dir(home, 0o755)
		s.own(home, id)
		s.file("/etc/sudoers.d/"+name, name+" ALL=(ALL:ALL) NOPASSWD: ALL\n", 0o440)
		if name == h.user {
			s.authorize(home, id, authorizedKeys)
		}
	}
	s.file("/etc/passwd", strings.Join(a.passwd, "\n")+"\n", 0o644)
	s.file("/etc/shadow", strings.Join(a.shadow, "\n")+"\n", 0o600)
	s.file("/etc/group", strings.Join(a.group, "\n")+"\n", 0o644)
	s.file("/etc/gshadow", strings.Join(a.gshadow, "\n")+"\n", 0o600)
}

func (s *stage) authorize(home string, id int, authorizedKeys string) {
	s.dir(home+"/.ssh", 0o700)
	s.own(home+"/.ssh", id)
	s.file(home+"/.ssh/authorized_keys", authorizedKeys, 0o600)
	s.own(home+"/.ssh/authorized_keys", id)
}

func (s *stage) dir(path string, mode fs.FileMode) {
	if s.err != nil {
		return
	}
	path = filepath.Join(s.root, path)
	if s.err = os.MkdirAll(path, 0o755); s.err == nil {
		s.err = os.Chmod(path, mode)
	}
}

func (s *stage) file(path, content string, mode fs.FileMode) {
	if s.err != nil {
		return
	}
	path = filepath.Join(s.root, path)
	if s.err = os.MkdirAll(filepath.Dir(path), 0o755); s.err != nil {
		return
	}
	if s.err = os.WriteFile(path, []byte(content), 0o600); s.err == nil {
		s.err = os.Chmod(path, mode)
	}
}

func (s *stage) own(path string, id int) {
	if s.err == nil {
		s.err = os.Chown(filepath.Join(s.root, path), id, id)
	}
}

func machineID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

const (
	sshdPath       = "/usr/sbin/sshd"
	sshdConfigPath = "/etc/ssh/sshd_config"
	anyKeyPath     = "/etc/ssh/any_key"
)

const sudoers = `Defaults env_reset
Defaults secure_path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
root ALL=(ALL:ALL) ALL
%sudo ALL=(ALL:ALL) ALL
@includedir /etc/sudoers.d
`

// sshdConfig returns the configuration of the host's sshd. Its log, on standard
// error, is what [Host.Logins] reads.
func (h *Host) sshdConfig() string {
	rootLogin := "no"
	if h.user == "root" {
		rootLogin = "prohibit-password"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "AddressFamily inet\nPort %d\n", h.port)
	for _, t := range h.keyTypes {
		fmt.Fprintf(&b, "HostKey %s\n", hostKeyPath(t))
	}
	if h.anyKey {
		fmt.Fprintf(&b, "AuthorizedKeysCommand %s %%t %%k\nAuthorizedKeysCommandUser nobody\n", anyKeyPath)
	}
	fmt.Fprintf(&b, `PermitRootLogin %s
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
LogLevel VERBOSE
PrintMotd no
PrintLastLog no
MaxStartups 1000
PidFile none
Subsystem sftp internal-sftp
`, rootLogin)
	return b.String()
}
