package ledger

import (
	"context"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
)

// pinRow is a pin with its row's number.
type pinRow struct {
	orchestrator.Pin
	id int64
}

// sameKey compares keys, whatever the address.
func (r pinRow) sameKey(p orchestrator.Pin) bool { return r.KeyType == p.KeyType && r.Key == p.Key }

func (r pinRow) sameKeyAndAddress(p orchestrator.Pin) bool {
	return r.sameKey(p) && r.Host == pinHost(p.Host) && r.Port == p.Port
}

// pinHost is how an address stands in the ledger: the case of a host's name means
// nothing, and ssh looks it up in lower case.
func pinHost(host string) string { return strings.ToLower(host) }

// livePinOf selects the live pin of a type at an address, as [pinHost] has it.
const livePinOf = ` WHERE host = ? AND port = ? AND key_type = ? AND retired_at IS NULL`

// selectPins returns pins with their users.
func selectPins(ctx context.Context, q querier, clauses string, args ...any) ([]pinRow, error) {
	rows, err := collect(ctx, q, scanPin, `
		SELECT
			id,
			host,
			port,
			key_type,
			key,
			sha256,
			source,
			instance_id,
			added_at,
			retired_at,
			retired
		FROM pin`+clauses+` ORDER BY host, port, id`, args...)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	at := make(map[int64]int, len(rows))
	ids := make([]int64, len(rows))
	for i, r := range rows {
		at[r.id], ids[i] = i, r.id
	}
	users, err := collect(ctx, q, scanPinUser, `
		SELECT
			pin,
			workspace,
			host
		FROM pin_user WHERE pin IN (SELECT value FROM json_each(?)) ORDER BY pin, workspace, host`, document{ids})
	for _, u := range users {
		p := &rows[at[u.pin]]
		p.Users = append(p.Users, u.PinUser)
	}
	return rows, err
}

// livePin returns the live pin of p's address and key.
func livePin(ctx context.Context, q querier, p orchestrator.Pin) (pinRow, bool, error) {
	rows, err := selectPins(ctx, q, livePinOf, pinHost(p.Host), p.Port, p.KeyType)
	if err != nil || len(rows) == 0 || !rows[0].sameKey(p) {
		return pinRow{}, false, err
	}
	return rows[0], true, nil
}

func scanPin(row scanner) (r pinRow, err error) {
	err = row.Scan(&r.id, &r.Host, &r.Port, &r.KeyType, &r.Key, &r.SHA256, &r.Source, &r.InstanceID,
		&instant{&r.AddedAt}, &instant{&r.RetiredAt}, opt(&r.Retired))
	return r, err
}

// pinUserRow is a pin's user with the pin's row number.
type pinUserRow struct {
	orchestrator.PinUser
	pin int64
}

func scanPinUser(row scanner) (u pinUserRow, err error) {
	err = row.Scan(&u.pin, &u.Workspace, &u.Host)
	return u, err
}

func (t *tx) insertPin(ctx context.Context, p orchestrator.Pin) (int64, error) {
	res, err := t.ExecContext(ctx, `
		INSERT INTO pin (
			host,
			port,
			key_type,
			key,
			sha256,
			source,
			instance_id,
			added_at
		) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		p.Host, p.Port, p.KeyType, p.Key, p.SHA256, p.Source, p.InstanceID, nanos(p.AddedAt))
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

func (t *tx) addPinUsers(ctx context.Context, id int64, users []orchestrator.PinUser) error {
	for _, u := range users {
		err := t.exec(ctx, `
			INSERT INTO pin_user (
				pin,
				workspace,
				host
			) VALUES (?, ?, ?)
			ON CONFLICT DO NOTHING`,
			id, u.Workspace, u.Host)
		if err != nil {
			return err
		}
	}
	return nil
}
