package ledger

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"
)

// nanos is how a time is stored; the zero time is NULL.
func nanos(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixNano()
}

// instant scans what [nanos] stored.
type instant struct{ dst *time.Time }

// Scan implements sql.Scanner.
func (i *instant) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*i.dst = time.Time{}
	case int64:
		*i.dst = time.Unix(0, v).UTC()
	default:
		return fmt.Errorf("scan time from %T", src)
	}
	return nil
}

// null is how an optional text is stored: empty is NULL.
func null[T ~string](s T) any {
	if s == "" {
		return nil
	}
	return string(s)
}

// optional scans what [null] stored.
type optional[T ~string] struct{ dst *T }

// Scan implements sql.Scanner.
func (o optional[T]) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*o.dst = ""
	case string:
		*o.dst = T(v)
	case []byte:
		*o.dst = T(v)
	default:
		return fmt.Errorf("scan text from %T", src)
	}
	return nil
}

// opt returns a scanner of an optional text.
func opt[T ~string](dst *T) optional[T] { return optional[T]{dst} }

// document stores and scans a value as JSON; nil is NULL.
type document struct{ v any }

// Value implements [driver.Valuer].
func (d document) Value() (driver.Value, error) {
	b, err := json.Marshal(d.v)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(b, []byte("null")) {
		return nil, nil
	}
	return string(b), nil
}

// Scan implements sql.Scanner; d.v is a pointer.
func (d document) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		return nil
	case string:
		return json.Unmarshal([]byte(v), d.v)
	case []byte:
		return json.Unmarshal(v, d.v)
	default:
		return fmt.Errorf("scan document from %T", src)
	}
}

// texts stores a list as a JSON array, never as NULL.
func texts(list []string) document {
	if list == nil {
		list = []string{}
	}
	return document{list}
}
