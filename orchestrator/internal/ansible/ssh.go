package ansible

import "strings"

// sshVars returns the extra variables that are given last and therefore beat an
// inventory's, a play's and a person's own. They hold a run to the pinned host
// keys, to the job's own agent, and to connections that end with the job.
//
// ansible_ssh_args alone does not suffice: the other variables named here could
// add a ProxyCommand, another configuration file or another program. Variables
// that only choose another address, port or user (ansible_ssh_host and the like)
// are left alone: a host without a pin is refused whatever it is called.
func sshVars(w work, seeded bool) map[string]any {
	return map[string]any{
		"ansible_ssh_args":              sshArgs(w, seeded),
		"ansible_ssh_common_args":       "",
		"ansible_ssh_extra_args":        "",
		"ansible_sftp_extra_args":       "",
		"ansible_scp_extra_args":        "",
		"ansible_ssh_executable":        "ssh",
		"ansible_sftp_executable":       "sftp",
		"ansible_scp_executable":        "scp",
		"ansible_ssh_pkcs11_provider":   "",
		"ansible_host_key_checking":     true,
		"ansible_ssh_host_key_checking": true,
		// A play may ask for `connection: paramiko`, which knows none of ssh's
		// options. It reads the pins from HOME, where Prepare lays them too.
		"ansible_paramiko_host_key_checking": true,
		"ansible_control_path":               "", // Ansible then names the sockets itself, briefly
		"ansible_control_path_dir":           w.control,
	}
}

// sshArgs returns the options of ssh, sftp and scp (ssh_config(5)). The first
// value of an option is the one that counts, and these stand before Ansible's.
//
// ssh reads ~/.ssh by the account database, not by HOME: `-F none` keeps its
// configuration out and `IdentityFile=none` its default keys. An exocomp
// playbook never needs a password; a person's may have ansible_password, and
// Ansible itself allows them only then.
func sshArgs(w work, seeded bool) string {
	options := []string{
		"StrictHostKeyChecking=yes",
		`UserKnownHostsFile="` + w.knownHosts + `"`,
		"GlobalKnownHostsFile=none",
		"KnownHostsCommand=none",
		"UpdateHostKeys=no",
		"ForwardAgent=no",
		"ProxyCommand=none",
		"IdentityFile=none",
		"ControlMaster=auto",
		"ControlPersist=60s",
	}
	if seeded {
		options = append(options, "BatchMode=yes", "PreferredAuthentications=publickey")
	}
	args := []string{"-F", "none"}
	for _, o := range options {
		args = append(args, "-o", "'"+o+"'") // Ansible splits them as a shell would
	}
	return strings.Join(args, " ")
}
