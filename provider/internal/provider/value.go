package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// raw returns a framework value as the protocol has it.
func raw(ctx context.Context, v attr.Value) (tftypes.Value, error) {
	return v.ToTerraformValue(ctx)
}

// document writes a wholly known value as canonical JSON: keys sorted, numbers
// with all their digits, null as null.
func document(v tftypes.Value) (json.RawMessage, error) {
	var out bytes.Buffer
	if err := encode(&out, v); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func encode(out *bytes.Buffer, v tftypes.Value) error {
	if !v.IsKnown() {
		return fmt.Errorf("encode a value that is not known yet")
	}
	if v.IsNull() {
		out.WriteString("null")
		return nil
	}
	switch t := v.Type(); {
	case t.Is(tftypes.Bool):
		var b bool
		if err := v.As(&b); err != nil {
			return err
		}
		out.WriteString(strconv.FormatBool(b))
		return nil
	case t.Is(tftypes.Number):
		var n big.Float
		if err := v.As(&n); err != nil {
			return err
		}
		out.WriteString(n.Text('f', -1))
		return nil
	case t.Is(tftypes.String):
		var s string
		if err := v.As(&s); err != nil {
			return err
		}
		return encodeText(out, s)
	}
	if list, ok := elements(v); ok {
		return encodeList(out, list)
	}
	if members, ok := members(v); ok {
		return encodeMembers(out, members)
	}
	return fmt.Errorf("encode a value of type %s", v.Type())
}

func encodeText(out *bytes.Buffer, s string) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // the encoder ends each value with a line end
	return nil
}

func encodeList(out *bytes.Buffer, list []tftypes.Value) error {
	out.WriteByte('[')
	for i, v := range list {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := encode(out, v); err != nil {
			return err
		}
	}
	out.WriteByte(']')
	return nil
}

func encodeMembers(out *bytes.Buffer, members map[string]tftypes.Value) error {
	out.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := encodeText(out, name); err != nil {
			return err
		}
		out.WriteByte(':')
		if err := encode(out, members[name]); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	return nil
}

// members returns what a known object or map holds; ok is false for any other
// value.
func members(v tftypes.Value) (m map[string]tftypes.Value, ok bool) {
	if !v.IsKnown() || v.IsNull() || !(v.Type().Is(tftypes.Object{}) || v.Type().Is(tftypes.Map{})) {
		return nil, false
	}
	return m, v.As(&m) == nil
}

// elements returns what a known list, set or tuple holds; ok is false for any
// other value.
func elements(v tftypes.Value) (list []tftypes.Value, ok bool) {
	t := v.Type()
	if !v.IsKnown() || v.IsNull() || !(t.Is(tftypes.List{}) || t.Is(tftypes.Tuple{}) || t.Is(tftypes.Set{})) {
		return nil, false
	}
	return list, v.As(&list) == nil
}
