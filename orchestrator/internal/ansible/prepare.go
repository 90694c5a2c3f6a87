package ansible

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/inventory"
	"github.com/exocomp/exocomp/seeds"
)

// Playbook names what is run: either a seed, or a file of an unpacked snapshot.
type Playbook struct {
	Seed     string // a name of package seeds
	Snapshot string // absolute path of the snapshot's root
	Entry    string // relative to the root, slash-separated
	Path     string // where the person has it, absolute; for messages
}

// Input is what a run is made of.
type Input struct {
	Install  Install
	Playbook Playbook
	// Work is the attempt's private directory, absolute. The run's HOME,
	// temporary files and SSH control sockets are below it.
	Work string
	// Inventory is the run's own copy, in Ansible's static JSON form.
	Inventory []byte
	// KnownHosts are the pins of the inventory's hosts, in OpenSSH's form.
	KnownHosts []byte
	// Vars are given as extra variables. Strings in them are data: a template
	// is not evaluated.
	Vars map[string]any
	// Args are passed through, as [ParseArgs] returned them.
	Args []string
	// Hosts limits the run to some hosts of the inventory; empty means all.
	Hosts []string
	// Without leaves hosts out of the run, also out of what a --limit among Args
	// leaves of it. Only one of Hosts and Without is set.
	Without []string
	// Vendor is a directory of vendored collections and roles, or empty. A seed
	// uses none.
	Vendor string
	// Path is the daemon's PATH, of which the run gets the absolute entries.
	Path string
}

// Prepared is what a supervisor executes. It adds what only it knows: the
// agent's SSH_AUTH_SOCK, the attempt's token, and the descriptor of the events
// ([seeds.EventsFD]). Neither Argv nor Env carries a variable of the run.
type Prepared struct {
	Argv []string
	Env  []string
	Dir  string
}

// Prepare writes the files of a run into in.Work and returns how it is started.
// It may be repeated for the next run of the same attempt once the one before
// has ended: everything is written anew.
func Prepare(in Input) (Prepared, error) {
	w, err := layOut(in.Work)
	if err != nil {
		return Prepared{}, fmt.Errorf("prepare ansible run: %w", err)
	}
	cfg, err := in.Playbook.place(w)
	if err != nil {
		return Prepared{}, fmt.Errorf("prepare ansible run: %w", err)
	}
	vars, err := inert(in.Vars)
	if err != nil {
		return Prepared{}, fmt.Errorf("prepare ansible run: encode variables: %w", err)
	}
	vendor := in.Vendor
	if in.Playbook.Seed != "" {
		vendor = ""
	}
	limit := in.Hosts
	argv := append([]string{in.Install.Path, "-i", w.inventory}, in.Args...)
	if len(in.Hosts) > 0 {
		argv = append(argv, "--limit", "@"+w.limit)
	}
	for _, name := range in.Without {
		limit = append(limit, "!"+name)
	}
	if len(in.Without) > 0 {
		argv = limitFurther(argv, w.limit)
	}
	argv = append(argv, "-e", "@"+w.vars, "-e", "@"+w.ssh, in.Playbook.path(w))

	err = w.write(map[string]content{
		w.inventory:  {data: in.Inventory},
		w.knownHosts: {data: in.KnownHosts},
		filepath.Join(w.home, ".ssh", "known_hosts"): {data: in.KnownHosts},
		w.limit:                                  {data: []byte(strings.Join(limit, "\n") + "\n")},
		w.vars:                                   {json: vars},
		w.ssh:                                    {json: sshVars(w, in.Playbook.Seed != "")},
		filepath.Join(w.callbacks, seeds.Events): {data: seeds.Read(seeds.Events)},
	})
	if err != nil {
		return Prepared{}, fmt.Errorf("prepare ansible run: %w", err)
	}
	return Prepared{
		Argv: argv,
		Env:  environment(w, cfg, searchPath(in.Install.Path, in.Path), vendor),
		Dir:  filepath.Dir(in.Playbook.path(w)),
	}, nil
}

// limitFurther returns the arguments with a --limit that a file of patterns
// limits further. Ansible divides a limit at its colons only where it has no
// comma (ansible/inventory/manager.py, split_host_pattern).
func limitFurther(argv []string, file string) []string {
	var out []string
	limit := "all"
	for _, a := range argv {
		if v, ok := strings.CutPrefix(a, "--limit="); ok {
			limit = v
		} else {
			out = append(out, a)
		}
	}
	by := ":"
	if strings.Contains(limit, ",") {
		by = ","
	}
	return append(out, "--limit", limit+by+"@"+file)
}

// path returns where the playbook lies, absolute, so that no name of it can be
// taken for an option.
func (p Playbook) path(w work) string {
	if p.Seed != "" {
		return filepath.Join(w.seeds, p.Seed)
	}
	return filepath.Join(p.Snapshot, filepath.FromSlash(p.Entry))
}

// place checks the playbook, puts a seed into the work directory, and returns
// the ansible.cfg that rules it. A seed's is empty: what an administrator set
// for people's plays must not change exocomp's own.
func (p Playbook) place(w work) (config, error) {
	if p.Seed != "" {
		path := filepath.Join(w.seeds, "ansible.cfg")
		err := w.write(map[string]content{
			p.path(w): {data: seeds.Read(p.Seed)},
			path:      {data: []byte("# Deliberately empty.\n")},
		})
		return config{path: path}, err
	}
	if !filepath.IsAbs(p.Snapshot) || !filepath.IsLocal(filepath.FromSlash(p.Entry)) {
		return config{}, orchestrator.Errorf(orchestrator.CodeInvalid, "the playbook %q does not lie inside its snapshot", p.Entry)
	}
	if info, err := os.Stat(p.path(w)); err != nil || !info.Mode().IsRegular() {
		return config{}, orchestrator.Errorf(orchestrator.CodeNotFound, "the snapshot holds no playbook %q", p.Entry).
			WithHint("check the path, then submit again")
	}
	return findConfig(p.Snapshot, filepath.Dir(p.path(w)))
}

// work is the layout of a work directory.
type work struct {
	home, temp, control, callbacks, seeds string // directories
	inventory, knownHosts, limit          string // files
	vars, ssh                             string // extra variables; ssh is given last
}

// layOut makes the directories. Sockets of an earlier run are removed, so that
// no run uses a connection which it did not make itself.
func layOut(dir string) (work, error) {
	if !filepath.IsAbs(dir) || strings.ContainsAny(dir, "\"'\\%$\n\r{}") {
		return work{}, orchestrator.Errorf(orchestrator.CodeInternal, "the work directory %q cannot stand in ssh's options", dir).
			WithHint("choose another data directory in exocomp.hcl")
	}
	w := work{
		home:       filepath.Join(dir, "home"),
		temp:       filepath.Join(dir, "tmp"),
		control:    filepath.Join(dir, "cp"),
		callbacks:  filepath.Join(dir, "callback"),
		seeds:      filepath.Join(dir, "seed"),
		inventory:  filepath.Join(dir, "inventory", "hosts.json"), // alone: no group_vars beside it
		knownHosts: filepath.Join(dir, "known_hosts"),
		limit:      filepath.Join(dir, "limit"),
		vars:       filepath.Join(dir, "vars.json"),
		ssh:        filepath.Join(dir, "ssh.json"),
	}
	if err := os.RemoveAll(w.control); err != nil {
		return work{}, err
	}
	for _, d := range []string{w.home, w.temp, w.control, w.callbacks, w.seeds, filepath.Dir(w.inventory), filepath.Join(w.home, ".ssh")} {
		if err := os.MkdirAll(d, durable.PrivateDir); err != nil {
			return work{}, err
		}
	}
	return w, nil
}

// content is what a file gets: bytes, or a value as JSON.
type content struct {
	data []byte
	json any
}

// write writes private files. They need not survive a crash: an attempt that
// one cut short is prepared anew.
func (w work) write(files map[string]content) error {
	for path, c := range files {
		data := c.data
		if c.json != nil {
			var err error
			if data, err = json.Marshal(c.json); err != nil {
				return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
			}
		}
		if err := os.WriteFile(path, data, durable.PrivateFile); err != nil {
			return err
		}
	}
	return nil
}

// inert returns the variables so that Ansible takes every string in them for
// data. What could hold a template is marked, as in its own JSON inventories.
func inert(vars map[string]any) (any, error) {
	data, err := json.Marshal(vars)
	if err != nil {
		return nil, err
	}
	// By way of JSON, so that typed maps and lists are walked like others.
	plain := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&plain); err != nil {
		return nil, err
	}
	if plain == nil {
		plain = map[string]any{}
	}
	for k, v := range plain {
		plain[k] = inertValue(v)
	}
	return plain, nil
}

func inertValue(v any) any {
	switch v := v.(type) {
	case string:
		if inventory.IsTemplate(v) {
			return map[string]any{"__ansible_unsafe": v}
		}
	case map[string]any:
		for k := range v {
			v[k] = inertValue(v[k])
		}
	case []any:
		for i := range v {
			v[i] = inertValue(v[i])
		}
	}
	return v
}
