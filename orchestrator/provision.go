package orchestrator

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Provision is what the ledger knows of an `exocomp_provision` resource: which
// workspace it has, and whether its chain ever succeeded. One workspace has at
// most one.
//
// The resource is known by its owner token, which it keeps in its private state.
// Until it was told of a success the ownership is provisional: OpenTofu taints a
// create that failed, and forgets one during which it was killed, and makes the
// resource anew, with another token and the same hosts.
type Provision struct {
	Workspace  string    `json:"workspace"`
	HandedOver bool      `json:"handed_over"`         // its hosts are the resource's; else the daemon applies the registered workspace
	Succeeded  bool      `json:"succeeded"`           // a chain of it has succeeded
	Released   bool      `json:"released"`            // the resource was deleted before any chain of it had succeeded
	Run        RunID     `json:"run,omitempty"`       // its newest run
	AbandonAt  time.Time `json:"abandon_at,omitzero"` // when its live run is cancelled unless a create claims it; zero: never
	LeaveJob   JobID     `json:"leave_job,omitempty"` // the newest leave play, or empty
	UpdatedAt  time.Time `json:"updated_at,omitzero"`
}

// AbandonAfter is how long the run of a deleted resource whose chain never
// succeeded goes on: the create that replaces it claims it within that time.
const AbandonAfter = 2 * time.Minute

// EnsureRun asks for the chain that an `exocomp_provision` describes. Asking
// again, with a new token after a failed create, after a lost answer or by a
// second apply, never makes a second chain of what one does already.
type EnsureRun struct {
	Workspace string
	Owner     Secret // the resource's token, at least 16 bytes
	// Claim takes the workspace from whichever resource has it: an import, which
	// a person asked for. A succeeded run that did what the spec says is then
	// the answer, whoever asked for it.
	Claim bool
	// Inventory is what the caller's apply has made, in the form of the outputs
	// of a workspace: `ansible_inventory` or `hosts`, see package inventory. Nil:
	// the daemon applies the registered workspace of that name.
	Inventory *HandedInventory
	Spec      RunSpec
	// Env are variables for the environment of the playbook, by their names.
	// They rest sealed.
	Env map[string]Secret
	// Attempt is the token of the job within which the caller runs ($EXOCOMP_ATTEMPT),
	// or empty. Such a caller is never made to wait: its job may hold the worker
	// that the run needs.
	Attempt Secret
	// Dir is the caller's working directory, or empty.
	Dir string
	By  Peer
}

// HandedInventory is an inventory that the caller of [EnsureRun] states. Exactly
// one of the two is set; each is a JSON object.
type HandedInventory struct {
	Tree  json.RawMessage // an Ansible inventory tree, as the output `ansible_inventory`
	Hosts json.RawMessage // host name to variables, as the output `hosts`
}

// Ensured is what became of an [EnsureRun].
type Ensured struct {
	Run Run
	// Waiting says that the run is not the answer: it does something else, and
	// must end first.
	Waiting bool
	// Deferred says that the run goes on when the caller's own job has ended.
	Deferred bool
}

// EndProvision ends a resource: it releases the run of one whose chain never
// succeeded, and otherwise cancels what runs, runs the leave play, and gives the
// workspace back. An inventory that the resource handed over is then published
// empty and its pins are retired.
type EndProvision struct {
	Workspace string
	// Owner is empty where the resource has lost its token: OpenTofu drops the
	// private state of a tainted resource when it replaces it. Run is then the
	// run that its state names, and stands for it.
	Owner   Secret
	Run     RunID
	Leave   *PlaySpec // nil: none
	Attempt Secret    // as of [EnsureRun]
	By      Peer
}

// ProvisionEnd is how far an [EndProvision] has come.
type ProvisionEnd struct {
	Run      RunID // the run that is being cancelled, or empty
	Job      JobID // the leave play, or empty
	Ended    bool  // all is done
	Stranger bool  // the workspace is not the resource's: nothing was done
}

// PlaySpec is a playbook for a workspace's inventory outside a chain.
type PlaySpec struct {
	Playbook      PlaybookRef     `json:"playbook"`
	Vars          json.RawMessage `json:"vars,omitempty"` // a JSON object: extra variables, as of a [RunSpec]
	SSHIdentities []string        `json:"ssh_identities,omitempty"`
}

// Validate reports every mistake in s together, as one [CodeInvalid] error.
func (s PlaySpec) Validate() error {
	var m Mistakes
	s.Playbook.validate(&m, "playbook")
	for _, f := range s.SSHIdentities {
		m.absolute("--ssh-identity", f)
	}
	m.Add(ValidateVars(s.Vars))
	return m.Err()
}

// minOwnerToken bounds an owner token from below, in bytes.
const minOwnerToken = 16

// Validate reports every mistake in e together, as one [CodeInvalid] error. What
// the inventory holds is looked at where it is derived.
func (e EnsureRun) Validate() error {
	var m Mistakes
	m.Add(ValidateWorkspaceName(e.Workspace))
	m.Add(validateOwner(e.Owner))
	m.Add(e.Spec.Validate(RunProvision))
	for name := range e.Env {
		m.Add(ValidateEnvName(name))
	}
	if h := e.Inventory; h != nil && (len(h.Tree) == 0) == (len(h.Hosts) == 0) {
		m.Addf("the inventory must be either a tree or a host map")
	}
	return m.Err()
}

// Validate reports every mistake in e together, as one [CodeInvalid] error.
func (e EndProvision) Validate() error {
	var m Mistakes
	m.Add(ValidateWorkspaceName(e.Workspace))
	if !e.Owner.IsZero() || e.Run == "" {
		m.Add(validateOwner(e.Owner))
	}
	if e.Leave != nil {
		m.Add(e.Leave.Validate())
	}
	return m.Err()
}

func validateOwner(token Secret) error {
	if len(token.Reveal()) < minOwnerToken {
		return Errorf(CodeInvalid, "the owner token is shorter than %d bytes", minOwnerToken)
	}
	return nil
}

// SameWork reports whether two specs make the same of the same inventory, so
// that one that did its work need not be followed by the other. How long the
// wait for SSH may take, and where the playbook lay, make no difference; the
// revision does unless it is passed over.
func (s RunSpec) SameWork(o RunSpec, passRevision bool) bool {
	onboard := func(p *PlaybookRef) PlaybookRef {
		if p == nil {
			return PlaybookRef{}
		}
		return PlaybookRef{Entry: p.Entry, Digest: p.Digest}
	}
	return onboard(&s.Playbook) == onboard(&o.Playbook) && onboard(s.OnboardPlaybook) == onboard(o.OnboardPlaybook) &&
		sameJSON(s.Vars, o.Vars) && slices.Equal(s.Args, o.Args) && slices.Equal(s.Egress, o.Egress) &&
		slices.Equal(s.SSHIdentities, o.SSHIdentities) && (passRevision || s.Revision == o.Revision)
}

// sameJSON compares two documents by what they hold; both are valid or empty.
func sameJSON(a, b json.RawMessage) bool {
	canonical := func(doc json.RawMessage) string {
		var v any
		if len(doc) == 0 || json.Unmarshal(doc, &v) != nil {
			return string(doc)
		}
		out, err := json.Marshal(v) // sorts the keys
		if err != nil {
			return string(doc)
		}
		if s := string(out); s != "{}" && s != "null" {
			return s
		}
		return ""
	}
	return canonical(a) == canonical(b)
}

// MaxVars bounds the extra variables of a run, in bytes of JSON.
const MaxVars = 1 << 20

// ValidateVars refuses extra variables that are no JSON object, are too many, or
// have a name that Ansible or exocomp gives a meaning of its own. The error is
// [CodeInvalid].
func ValidateVars(vars json.RawMessage) error {
	if len(vars) == 0 {
		return nil
	}
	if len(vars) > MaxVars {
		return Errorf(CodeInvalid, "the variables have %d bytes of JSON; at most %d are taken", len(vars), MaxVars)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(vars, &object); err != nil || object == nil {
		return Errorf(CodeInvalid, "the variables are no JSON object")
	}
	var m Mistakes
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch {
		case !variableName.MatchString(name):
			m.Addf("variable %q: Ansible takes letters, digits and _, not beginning with a digit", name)
		case strings.HasPrefix(name, "ansible_"):
			m.Addf("variable %q: how a host is reached stands in the inventory, not in the variables", name)
		case strings.HasPrefix(name, "exocomp_"):
			m.Addf("variable %q: names that begin with exocomp_ are exocomp's own", name)
		}
	}
	return m.Err()
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// envNames are names of an environment that would change what programs do
// instead of telling a playbook something.
var envNames = regexp.MustCompile(`^(PATH|HOME|SHELL|USER|LOGNAME|PWD|IFS|ENV|BASH_ENV|TMPDIR|LANG|LANGUAGE|TERM|TZ|` +
	`(LD|LC|ANSIBLE|SSH|EXOCOMP|TF|GIT|XDG|BASH_FUNC)_.*|PYTHON.*|PERL5.*|PERLLIB|RUBYOPT|RUBYLIB|NODE_OPTIONS|JAVA_TOOL_OPTIONS|.*_PROXY)$`)

// ValidateEnvName refuses a name under which no secret may stand in a playbook's
// environment. The error is [CodeInvalid].
func ValidateEnvName(name string) error {
	switch {
	case !variableName.MatchString(name):
		return Errorf(CodeInvalid, "environment variable %q: use letters, digits and _, not beginning with a digit", name)
	case envNames.MatchString(strings.ToUpper(name)):
		return Errorf(CodeInvalid, "environment variable %q would change how programs work", name).
			WithHint("choose another name, such as DB_PASSWORD")
	}
	return nil
}
