package orchestrator

import "time"

// Inventory is the ledger's row of a standing inventory. The row is the truth;
// the file at Path is a published copy.
type Inventory struct {
	Workspace string
	Digest    string // sha256:<hex> of Content
	Content   []byte // Ansible's static JSON form
	Path      string // where the copy is published
	Hosts     []string
	Captured  int       // outputs that it was derived from
	Job       JobID     // the apply that captured it
	UpdatedAt time.Time // of the newest capture, changed or not
}

// Name returns the inventory's name, `tf:<workspace>`.
func (i Inventory) Name() string { return InventoryName(i.Workspace) }

// Admission is the ledger's word that a host of an inventory may be played
// against: its key is pinned and it was onboarded. It ends with the pin.
type Admission struct {
	Workspace string
	Host      string
	Login     Login
	Address   string // host:port at the time
	Job       JobID
	At        time.Time
}

// Login says as whom Ansible reaches an admitted host.
type Login string

const (
	// LoginAutomation: the automation user, with the fleet key.
	LoginAutomation Login = "automation"
	// LoginInventory: the user that the inventory names.
	LoginInventory Login = "inventory"
)
