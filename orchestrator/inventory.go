package orchestrator

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Inventory is the ledger's row of a standing inventory. The row is the truth;
// the file at Path is a published copy.
type Inventory struct {
	Workspace string    `json:"workspace,omitempty"`
	Digest    string    `json:"digest"`            // sha256:<hex> of Content
	Content   []byte    `json:"content,omitempty"` // Ansible's static JSON form
	Path      string    `json:"path"`              // where the copy is published
	Hosts     []string  `json:"hosts,omitempty"`
	Captured  int       `json:"captured"`            // outputs that it was derived from
	Job       JobID     `json:"job,omitempty"`       // the apply that captured it; empty where a resource handed it over
	UpdatedAt time.Time `json:"updated_at,omitzero"` // of the newest capture, changed or not
}

// Name returns the inventory's name, `tf:<workspace>`.
func (i Inventory) Name() string { return InventoryName(i.Workspace) }

// NamesNoHosts refuses to play against the inventory, which names no hosts: a
// play would converge nobody and Ansible call it a success. then is the command
// that goes on once hosts are declared.
func (i Inventory) NamesNoHosts(then string) *Error {
	return Errorf(CodeRefused, "refused: the inventory %s names no hosts", i.Name()).
		WithHint("name hosts in the output hosts or ansible_inventory, then: %s", then)
}

// Admission is the ledger's word that a host of an inventory may be played
// against: its key is pinned and it was onboarded. It ends with the pin.
type Admission struct {
	Workspace string    `json:"workspace,omitempty"`
	Host      string    `json:"host,omitempty"`
	Login     Login     `json:"login,omitempty"`
	Address   string    `json:"address"` // host:port at the time
	Job       JobID     `json:"job,omitempty"`
	At        time.Time `json:"at,omitzero"`
}

// Login says as whom Ansible reaches an admitted host.
type Login string

const (
	// LoginAutomation: the automation user, with the fleet key.
	LoginAutomation Login = "automation"
	// LoginInventory: the user that the inventory names.
	LoginInventory Login = "inventory"
)

// Place is where a host of an inventory is to be found.
type Place struct {
	Name       string `json:"name"`
	Address    string `json:"address,omitempty"`     // empty for a local host
	Port       int    `json:"port,omitempty"`        // 0 for a local host
	InstanceID string `json:"instance_id,omitempty"` // exocomp_instance_id
}

// PlacesDigest tells one set of machines from another: it is the same for the
// same hosts at the same places, whatever else an inventory says of them.
func PlacesDigest(places []Place) string {
	sorted := slices.Clone(places)
	for i, p := range sorted {
		sorted[i].Address = strings.ToLower(p.Address)
	}
	slices.SortFunc(sorted, func(a, b Place) int { return cmp.Compare(a.Name, b.Name) })
	doc, err := json.Marshal(sorted)
	if err != nil {
		panic(err) // strings and numbers
	}
	sum := sha256.Sum256(doc)
	return "sha256:" + hex.EncodeToString(sum[:])
}
