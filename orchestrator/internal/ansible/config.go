package ansible

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/exocomp/exocomp/orchestrator/internal/durable"
)

// systemConfig is what Ansible reads where a person has no ansible.cfg.
const systemConfig = "/etc/ansible/ansible.cfg"

// maxConfig bounds an ansible.cfg; one with every setting has 50 KiB.
const maxConfig = 1 << 20

// config is the ansible.cfg that rules a run.
type config struct {
	path     string            // given as ANSIBLE_CONFIG; empty: Ansible finds the system's by itself
	base     string            // what relative paths in it are relative to
	defaults map[string]string // its section [defaults]
}

// findConfig returns the nearest ansible.cfg, from the playbook's directory up
// to the snapshot's root, else the system's.
func findConfig(root, dir string) (config, error) {
	for d := dir; ; d = filepath.Dir(d) {
		c, err := readConfig(filepath.Join(d, "ansible.cfg"))
		if err == nil {
			c.path = filepath.Join(d, "ansible.cfg")
			return c, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return config{}, err
		}
		if d == filepath.Clean(root) || d == filepath.Dir(d) {
			break
		}
	}
	// A system configuration that the daemon may not read is not read by the
	// run either: both are the same user.
	c, err := readConfig(systemConfig)
	if err != nil {
		return config{}, nil
	}
	return c, nil
}

func readConfig(path string) (config, error) {
	data, err := durable.ReadRegular(path, maxConfig)
	if err != nil {
		return config{}, fmt.Errorf("read ansible.cfg: %w", err)
	}
	return config{base: filepath.Dir(path), defaults: Settings(string(data))["defaults"]}, nil
}

// Settings returns what an ansible.cfg says, by section and key, as Python's
// configparser reads it for Ansible: keys without regard to case and here in lower
// case, `;` begins a comment anywhere and # at the start of a line, an indented
// line continues the value before it.
func Settings(text string) map[string]map[string]string {
	sections := map[string]map[string]string{}
	values, key := map[string]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if i := strings.IndexByte(line, ';'); i == 0 || i > 0 && (line[i-1] == ' ' || line[i-1] == '\t') {
			line = strings.TrimRight(line[:i], " \t")
		}
		trimmed := strings.TrimLeft(line, " \t")
		switch {
		case trimmed == "" || trimmed[0] == '#':
		case trimmed != line && key != "":
			values[key] += "\n" + trimmed
		case trimmed[0] == '[':
			section := strings.Trim(trimmed, "[]")
			if sections[section] == nil {
				sections[section] = map[string]string{}
			}
			values, key = sections[section], ""
		default:
			name, value := trimmed, ""
			if i := strings.IndexAny(trimmed, "=:"); i >= 0 {
				name, value = trimmed[:i], strings.TrimSpace(trimmed[i+1:])
			}
			key = strings.ToLower(strings.TrimSpace(name))
			values[key] = value
		}
	}
	return sections
}

// callbackPlugins returns where callback plugins are looked for without
// exocomp: what the configuration says, else Ansible's default.
func (c config) callbackPlugins() []string {
	if dirs := c.paths("callback_plugins"); len(dirs) > 0 {
		return dirs
	}
	return []string{"/usr/share/ansible/plugins/callback"}
}

// paths returns the directories of a setting, none where it is not set.
func (c config) paths(key string) (dirs []string) {
	for d := range strings.SplitSeq(strings.TrimSpace(c.defaults[key]), ":") {
		d = strings.Trim(strings.TrimSpace(d), `"'`)
		if d == "" {
			continue
		}
		// A path in a variable is relative to the working directory, one in the
		// file to the file.
		if !strings.ContainsAny(d[:1], "/~$") && !strings.Contains(d, "{{") {
			d = filepath.Join(c.base, d)
		}
		dirs = append(dirs, d)
	}
	return dirs
}

// setsRemoteTemp reports whether the person chose a remote temporary directory.
func (c config) setsRemoteTemp() bool { return c.defaults["remote_tmp"] != "" }
