package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/ansible"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// maxLinkConfig bounds an ansible.cfg; one with every setting has 50 KiB.
const maxLinkConfig = 1 << 20

// linkSetting is one setting of the ansible.cfg that a link lays. A person's own
// does as well where it says what the needed ones say.
type linkSetting struct {
	section, key, value string
	needed              bool
	why                 string
}

// linkSettings are the settings, with the command that prints the pins.
func linkSettings(knownHosts string) []linkSetting {
	return []linkSetting{
		{"defaults", "inventory", inventoryExecutable, false, "what is played against where no -i is given"},
		{"inventory", "any_unparsed_is_failed", "True", true, "without it an inventory that fails is a warning and exit code 0"},
		{"inventory", "enable_plugins", "script, host_list, auto", false, "add yaml or ini to read such files too; Ansible then tries them on the executable as well, when that fails, and says so"},
		{"ssh_connection", "ssh_args", linkSSHArgs(knownHosts), true, "every host key is verified against the pins, which the daemon is asked for at each connection"},
		{"ssh_connection", "control_path_dir", "~/.ansible/exocomp", true, "connections that others have opened, and verified otherwise, are not shared"},
		{"paramiko_connection", "host_key_auto_add", "False", false, "paramiko knows the pins not at all: it must ask you"},
	}
}

// linkSSHArgs returns the options of ssh (ssh_config(5)); the first value of an
// option counts, and these stand before Ansible's and a person's own.
//
// ~/.ssh/config is read, since a person's keys, users and jump hosts are in it;
// whatever there could take the place of the pins is named here.
func linkSSHArgs(knownHosts string) string {
	args := []string{"-o ControlMaster=auto", "-o ControlPersist=60s"} // Ansible's default
	for _, o := range []string{
		"StrictHostKeyChecking=yes",
		"KnownHostsCommand=" + knownHosts,
		"UserKnownHostsFile=/dev/null",
		"GlobalKnownHostsFile=/dev/null",
		"UpdateHostKeys=no",
		"VerifyHostKeyDNS=no",
		"NoHostAuthenticationForLocalhost=no",
		"CheckHostIP=no",
	} {
		if strings.Contains(o, " ") {
			o = "'" + o + "'" // Ansible splits them as a shell would
		}
		args = append(args, "-o "+o)
	}
	return strings.Join(args, " ")
}

// linkConfig returns the ansible.cfg of a link. Its first line says which the rest
// was, so that what a person has changed in it is never overwritten.
func linkConfig() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find exocomp: %w", err)
	}
	knownHosts, err := knownHostsCommand(self)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	section := ""
	for _, s := range linkSettings(knownHosts) {
		if s.section != section {
			section = s.section
			fmt.Fprintf(&b, "\n[%s]\n", section)
		}
		fmt.Fprintf(&b, "# %s\n%s = %s\n", s.why, s.key, s.value)
	}
	return signed(b.String()), nil
}

// knownHostsCommand is the command by which ssh asks for the pins of the name that
// it looks up, its %H. The path passes through an ini file, Ansible's idea of a
// shell and ssh's own.
func knownHostsCommand(self string) (string, error) {
	strange := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+,=@:~ ", r)
	}
	if i := strings.IndexFunc(self, strange); i >= 0 {
		return "", orchestrator.Errorf(orchestrator.CodeRefused, "the path %s of exocomp cannot stand in an ansible.cfg", self).
			WithHint("install exocomp where the path is of letters, digits and ._-+,=@:~ alone")
	}
	if strings.Contains(self, " ") {
		self = `"` + self + `"`
	}
	return self + " host known-hosts %H", nil
}

const signature = "# exocomp inventory link wrote this, and renews it until you change it; then it is yours. "

// signed puts a first line before text that tells whether text was changed.
func signed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return signature + hex.EncodeToString(sum[:8]) + "\n" + text
}

// configMissing says whether config has to be written to path. A person's own file
// is left alone if it says what is needed, and else refused with what it lacks.
func configMissing(path, config string) (bool, error) {
	data, err := durable.ReadRegular(path, maxLinkConfig)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, orchestrator.Errorf(orchestrator.CodeRefused, "%s: %w", path, err).WithHint("move it away, or link into another directory")
	case string(data) == config:
		return false, nil
	}
	if _, text, ok := strings.Cut(string(data), "\n"); ok && signed(text) == string(data) {
		return true, nil
	}
	own := ansible.Settings(string(data))
	if beside := bypassing(own); len(beside) > 0 {
		return false, orchestrator.Errorf(orchestrator.CodeRefused, "%s is yours, and reaches hosts by what does not know the pins:\n%s", path, strings.Join(beside, "\n")).
			WithHint("take it out there, or link into another directory")
	}
	lacks := lacking(own, ansible.Settings(config))
	if len(lacks) == 0 {
		return false, nil
	}
	return false, orchestrator.Errorf(orchestrator.CodeRefused, "%s is yours, and lacks what makes Ansible fail closed:\n%s", path, strings.Join(lacks, "\n")).
		WithHint("add it there, or link into another directory")
}

// bypassing lists the settings by which another program than ssh itself would
// connect, to which the options that verify host keys mean nothing.
func bypassing(has map[string]map[string]string) []string {
	var lines []string
	if v := has["defaults"]["transport"]; v != "" && v != "ssh" && v != "smart" {
		lines = append(lines, "[defaults] transport = "+v)
	}
	if v := has["ssh_connection"]["ssh_executable"]; v != "" && v != "ssh" {
		lines = append(lines, "[ssh_connection] ssh_executable = "+v)
	}
	return lines
}

// lacking lists the needed settings that has does not have as want has them.
func lacking(has, want map[string]map[string]string) []string {
	var lines []string
	for _, s := range linkSettings("") {
		value := want[s.section][s.key]
		if s.needed && !sameSetting(has[s.section][s.key], value) {
			lines = append(lines, fmt.Sprintf("[%s] %s = %s", s.section, s.key, value))
		}
	}
	return lines
}

// sameSetting compares settings; a truth has several spellings.
func sameSetting(has, want string) bool {
	return has == want || want == "True" && slices.Contains([]string{"true", "yes", "on", "1", "t", "y"}, strings.ToLower(has))
}
