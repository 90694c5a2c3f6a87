package ansible

import "strings"

// environment returns everything that a run's environment holds, but for what
// its supervisor adds. Nothing is inherited: the daemon's own may have secrets,
// and ANSIBLE_* of whoever started it would rule every run.
//
// These variables beat the person's ansible.cfg, so only what exocomp needs is
// named here.
func environment(w work, cfg config, path, vendor string) []string {
	env := append(baseEnv(w.home, w.temp, path),
		"ANSIBLE_CALLBACK_PLUGINS="+strings.Join(append([]string{w.callbacks}, cfg.callbackPlugins()...), ":"),
		// An inventory that cannot be read is otherwise a warning and exit code 0.
		"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED=1",
		// The first one reads JSON files; the others are for an ansible-playbook
		// that a task starts.
		"ANSIBLE_INVENTORY_ENABLED=yaml,host_list,script,auto,ini,toml",
		"ANSIBLE_PIPELINING=1",
		// An ansible.cfg that says otherwise would run here what is meant for the
		// hosts; which of them are local, the inventory says.
		"ANSIBLE_TRANSPORT=ssh",
		"ANSIBLE_HOST_KEY_CHECKING=True",
		"ANSIBLE_PARAMIKO_HOST_KEY_AUTO_ADD=False",
		"ANSIBLE_PARAMIKO_RECORD_HOST_KEYS=False",
		"ANSIBLE_RETRY_FILES_ENABLED=0",
	)
	env = append(env, vendorPaths(cfg, vendor)...)
	if cfg.path != "" {
		env = append(env, "ANSIBLE_CONFIG="+cfg.path)
	}
	if !cfg.setsRemoteTemp() {
		// On a host the login's home, as by default; for what runs here (local
		// hosts, delegated tasks) the run's HOME, which is all that a sandbox
		// grants. The default, ~, is the account's home in both cases.
		env = append(env, "ANSIBLE_REMOTE_TMP=$HOME/.ansible/tmp")
	}
	return env
}

// baseEnv is what every child gets.
func baseEnv(home, temp, path string) []string {
	return []string{
		"HOME=" + home,
		"PATH=" + path,
		"LANG=C.UTF-8",
		"LC_ALL=C.UTF-8",
		"TMPDIR=" + temp,
		"ANSIBLE_LOCAL_TEMP=" + temp,
		"ANSIBLE_NOCOLOR=1",
		"PYTHONDONTWRITEBYTECODE=1", // a snapshot is shared and read-only
	}
}
