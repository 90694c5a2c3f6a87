package schedule

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

func parse(t testing.TB, cron, zone string) Spec {
	t.Helper()
	s, err := Parse(cron, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(t testing.TB, s string) time.Time {
	t.Helper()
	out, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatIsNoCronExpressionIsRefusedByName(t *testing.T) {
	for cron, says := range map[string]string{
		"":                             "it is empty",
		"  ":                           "it is empty",
		"0 3 * * *":                    "the one for the second is missing: '0 0 3 * * *'",
		"0 0 3 * * * *":                "it has 7 field(s) and not 6",
		"0":                            "it has 1 field(s)",
		"@daily":                       "@daily is not taken",
		"@every 5m":                    "@every is not taken",
		"TZ=0":                         `begins with "TZ=0"`,
		"TZ=0 0 0 3 * * *":             `begins with "TZ=0"`,
		"CRON_TZ=Europe/Berlin * * * ": `begins with "CRON_TZ=Europe/Berlin"`,
		"TZ=Europe/Berlin 0 3 * * *":   `begins with "TZ=Europe/Berlin"`,
		"0 TZ=0 3 * * *":               `field 2, the minute, is "TZ=0"`,
		"60 0 3 * * *":                 `field 1, the second, is "60": end of range (60) above maximum (59)`,
		"0 61 3 * * *":                 `field 2, the minute, is "61"`,
		"0 0 24 * * *":                 `field 3, the hour, is "24"`,
		"0 0 3 0 * *":                  `field 4, the day of the month, is "0"`,
		"0 0 3 * 13 *":                 `field 5, the month, is "13"`,
		"0 0 3 * Foo *":                `field 5, the month, is "Foo"`,
		"0 0 3 * * 7":                  `field 6, the day of the week, is "7": end of range (7) above maximum (6); Sunday is 0, or sun`,
		"0 */0 3 * * *":                `field 2, the minute, is "*/0"`,
		"0 -5 3 * * *":                 `field 2, the minute, is "-5"`,
		"0 , 3 * * *":                  `field 2, the minute, is ","`,
		"0 5, 3 * * *":                 `field 2, the minute, is "5,"`,
		"0 5-1 3 * * *":                `field 2, the minute, is "5-1"`,
		"0 0 3 L * *":                  `field 4, the day of the month, is "L"`,
		"0 0 3 30 2 *":                 `day of the month "30" never comes in month "2"`,
		"0 0 3 31 4,6 *":               `day of the month "31" never comes in month "4,6"`,
	} {
		_, err := Parse(cron, "UTC")
		if !errors.Is(err, orchestrator.ErrInvalid) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "--cron") {
			t.Errorf("%q: %v, want an invalid --cron that says %q", cron, err, says)
		}
	}
	for _, zone := range []string{"Local", "Nowhere", "../etc/passwd", "0", "Europe/Berlin "} {
		if _, err := Parse("0 0 3 * * *", zone); !errors.Is(err, orchestrator.ErrInvalid) || !strings.Contains(err.Error(), "--timezone") {
			t.Errorf("zone %q: %v", zone, err)
		}
	}
}

// The spring and the autumn day of three zones, one of which moves by half an
// hour and one of which did so at midnight.
func TestDaylightSaving(t *testing.T) {
	for name, c := range map[string]struct {
		cron, zone, after string
		want              []string
	}{
		"skipped in Berlin": {"0 30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", []string{
			"2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00",
		}},
		"repeated in Berlin": {"0 30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{
			"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00",
		}},
		"several skipped in Berlin are one": {"0 0,10,20 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{
			"2026-03-29T03:00:00+02:00", "2026-03-29T03:10:00+02:00", "2026-03-29T03:20:00+02:00", "2026-03-30T02:00:00+02:00",
		}},
		"skipped in New York": {"0 30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", []string{
			"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00",
		}},
		"repeated in New York": {"0 30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", []string{
			"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00",
		}},
		"asked for between the two in New York": {"0 30 1 * * *", "America/New_York", "2026-11-01T05:30:00Z", []string{
			"2026-11-02T01:30:00-05:00",
		}},
		"skipped on Lord Howe": {"0 15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", []string{
			"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00",
		}},
		"repeated on Lord Howe": {"0 45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", []string{
			"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30",
		}},
		"midnight skipped in Sao Paulo": {"0 0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", []string{
			"2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00",
		}},
		"a day skipped in Apia": {"0 0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", []string{
			"2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00",
		}},
		"every half hour passes through spring": {"0 */30 * * * *", "Europe/Berlin", "2026-03-29T00:15:00Z", []string{
			"2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00",
		}},
		"every half hour passes through autumn": {"0 */30 * * * *", "Europe/Berlin", "2026-10-25T00:15:00Z", []string{
			"2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:00:00+01:00",
		}},
		"every twenty minutes passes through Lord Howe's spring": {"0 */20 * * * *", "Australia/Lord_Howe", "2026-10-03T15:15:00Z", []string{
			"2026-10-04T02:40:00+11:00", "2026-10-04T03:00:00+11:00",
		}},
		"29 February": {"0 0 3 29 2 *", "UTC", "2026-01-01T00:00:00Z", []string{"2028-02-29T03:00:00Z", "2032-02-29T03:00:00Z"}},
		"names":       {"0 0 3 * jan mon-tue", "UTC", "2026-11-30T00:00:00Z", []string{"2027-01-04T03:00:00Z", "2027-01-05T03:00:00Z"}},
	} {
		spec, now := parse(t, c.cron, c.zone), at(t, c.after)
		var got []string
		for range c.want {
			now = spec.Next(now)
			got = append(got, now.Format(time.RFC3339))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Whatever is parsed, its instants rise and are where the clock shows them.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"0 0 3 * * *", "*/7 1-5/2 * * jan-mar sun", "? ? ? 29 2 ?", "TZ=0", "0 30 2 * * *"} {
		f.Add(s, "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, cron, zone string) {
		spec, err := Parse(cron, zone)
		if err != nil {
			if !errors.Is(err, orchestrator.ErrInvalid) {
				t.Errorf("%v is not invalid", err)
			}
			return
		}
		now := at(t, "2026-03-28T23:59:59Z")
		for range 50 {
			next := spec.Next(now)
			if next.IsZero() {
				return
			}
			if !next.After(now) {
				t.Fatalf("%q in %q: %s follows %s", cron, zone, next, now)
			}
			now = next
		}
	})
}
