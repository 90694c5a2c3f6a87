// Package schedule knows when schedules are due and makes their fires: the
// reading of cron expressions, which is pure, and the [Loop] over a clock.
package schedule

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // for machines without the zones of their own

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/robfig/cron/v3"
)

// fields are what a cron expression consists of, in order.
var fields = []struct {
	name   string
	option cron.ParseOption
}{
	{"second", cron.Second},
	{"minute", cron.Minute},
	{"hour", cron.Hour},
	{"day of the month", cron.Dom},
	{"month", cron.Month},
	{"day of the week", cron.Dow},
}

const cronHint = "six fields, seconds first: second minute hour day-of-month month day-of-week, such as '0 0 3 * * *' for every day at 3"

// Spec is a cron expression in a time zone.
type Spec struct {
	cron cron.Schedule
	zone *time.Location
	// everyHour says that the expression names no time of the day: such a
	// schedule goes by the time that passes, also where the clock repeats an hour.
	everyHour bool
}

// Parse reads a cron expression of six fields, seconds first, and the name of a
// time zone; empty is the machine's own. What it does not take, and what never
// comes, is [orchestrator.CodeInvalid] and names the field.
func Parse(expression, timezone string) (Spec, error) {
	zone, err := loadZone(timezone)
	if err != nil {
		return Spec{}, err
	}
	words := strings.Fields(expression)
	if err := refuseForm(expression, words); err != nil {
		return Spec{}, err
	}
	for i, word := range words {
		if err := checkField(i, word); err != nil {
			return Spec{}, err
		}
	}
	var options cron.ParseOption
	for _, f := range fields {
		options |= f.option
	}
	parsed, err := cron.NewParser(options).Parse(strings.Join(words, " "))
	if err != nil {
		return Spec{}, orchestrator.Errorf(orchestrator.CodeInvalid, "--cron %q: %w", expression, err).WithHint(cronHint)
	}
	s := Spec{cron: parsed, zone: zone, everyHour: everyHour(parsed)}
	if parsed.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Spec{}, orchestrator.Errorf(orchestrator.CodeInvalid,
			"--cron %q: day of the month %q never comes in month %q", expression, words[3], words[4]).WithHint(cronHint)
	}
	return s, nil
}

func loadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.Local, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, orchestrator.Errorf(orchestrator.CodeInvalid, "--timezone %.80q is no time zone", name).
			WithHint("use a name such as Europe/Berlin or UTC (timedatectl list-timezones), or leave it away for the machine's own")
	}
	return zone, nil
}

// refuseForm refuses what is not six fields, among it what the parser would take
// for a time zone or a description.
func refuseForm(expression string, words []string) error {
	invalid := func(format string, args ...any) error {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "--cron %.80q: %s", expression, fmt.Sprintf(format, args...)).WithHint(cronHint)
	}
	switch {
	case len(words) == 0:
		return invalid("it is empty")
	case strings.Contains(words[0], "="):
		return orchestrator.Errorf(orchestrator.CodeInvalid, "--cron %.80q: it begins with %.40q", expression, words[0]).
			WithHint("the time zone is a flag of its own: --timezone Europe/Berlin")
	case strings.HasPrefix(words[0], "@"):
		return invalid("%.40s is not taken", words[0])
	case len(words) == len(fields)-1:
		return invalid("it has 5 fields, the one for the second is missing: '0 %s'", strings.Join(words, " "))
	case len(words) != len(fields):
		return invalid("it has %d field(s) and not 6", len(words))
	default:
		return nil
	}
}

// fieldForm keeps what the parser would take for more than a field away from it.
var fieldForm = regexp.MustCompile(`^[0-9A-Za-z*/,?-]+$`)

// checkField reads one field by itself, so that a mistake is found in its place.
func checkField(i int, word string) error {
	invalid := func(why string) error {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "--cron: field %d, the %s, is %.40q: %s", i+1, fields[i].name, word, why).
			WithHint(cronHint)
	}
	if !fieldForm.MatchString(word) || strings.Trim(word, ",") != word || strings.Contains(word, ",,") {
		return invalid("use numbers, names, *, ranges (1-5), steps (*/15) and lists (1,15)")
	}
	if _, err := cron.NewParser(fields[i].option).Parse(word); err != nil {
		why := strings.TrimSuffix(err.Error(), ": "+word)
		if i == len(fields)-1 && strings.Contains(word, "7") {
			why += "; Sunday is 0, or sun"
		}
		return invalid(why)
	}
	return nil
}

// everyHour reports whether an expression takes all hours of the day.
func everyHour(s cron.Schedule) bool {
	spec, ok := s.(*cron.SpecSchedule)
	const hours = 1<<24 - 1
	return ok && spec.Hour&hours == hours
}

// Next returns the first instant after t, in the zone; zero where none comes.
//
// A time of the day that the clock passes over is the first instant after the
// gap; one that it repeats is the first of the two.
func (s Spec) Next(t time.Time) time.Time {
	t = t.In(s.zone)
	if s.everyHour {
		return s.nextPassing(t)
	}
	for wall := asUTC(t); ; {
		if wall = s.cron.Next(wall); wall.IsZero() {
			return time.Time{}
		}
		if at := inZone(wall, s.zone); at.After(t) {
			return at
		}
	}
}

// nextPassing returns the next instant after t at which the clock on the wall
// shows what the expression names. It looks at one offset of the zone after the
// other.
func (s Spec) nextPassing(t time.Time) time.Time {
	for after := asUTC(t); ; {
		_, offset := t.Zone()
		_, end := t.ZoneBounds()
		wall := s.cron.Next(after)
		if wall.IsZero() {
			return wall
		}
		at := wall.Add(-time.Duration(offset) * time.Second).In(s.zone)
		if end.IsZero() || at.Before(end) {
			return at
		}
		t, after = end, asUTC(end).Add(-time.Nanosecond)
	}
}

// asUTC returns what the clock on the wall shows at t, as if it were UTC, where
// nothing is skipped and nothing repeated.
func asUTC(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// inZone returns the first instant at which the clock in zone shows wall, or the
// end of the gap that holds it.
func inZone(wall time.Time, zone *time.Location) time.Time {
	near := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), zone)
	start, end := near.ZoneBounds()
	around := []time.Time{near}
	if !start.IsZero() {
		around = append(around, start.Add(-time.Nanosecond))
	}
	if !end.IsZero() {
		around = append(around, end)
	}
	var first time.Time
	for _, other := range around {
		_, offset := other.Zone()
		at := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if asUTC(at).Equal(wall) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	switch {
	case !first.IsZero():
		return first
	case asUTC(near).After(wall): // it lies behind the gap
		return start
	default:
		return end
	}
}
