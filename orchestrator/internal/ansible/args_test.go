package ansible

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/exocomp/exocomp/orchestrator"
)

func TestParseArgs(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"--check|--diff", "--check|--diff"},
		{"-CDvv", "--check|--diff|--verbose|--verbose"},
		{"-l|tf:edge:&web", "--limit=tf:edge:&web"},
		{"-lweb|-t|a|--skip-tags=b,c", "--limit=web|--tags=a|--skip-tags=b,c"},
		{"-Cf10", "--check|--forks=10"},
		{"-e|k=v|-e@vars/more.yml|--extra-vars|{\"a\": 1}", "--extra-vars=k=v|--extra-vars=@vars/more.yml|--extra-vars={\"a\": 1}"},
		{"--start-at-task=Install = it", "--start-at-task=Install = it"},
		{"--limit=@retry", "--limit=@retry"},
	} {
		got, err := ParseArgs(split(c.in))
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
		} else if diff := cmp.Diff(split(c.want), got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.in, diff)
		}
	}
}

func TestParseArgsRefuses(t *testing.T) {
	for _, in := range []string{
		"-i|other", "--inventory=other", "-u|root", "--user=x", "--ssh-common-args=-J x", "--private-key=k",
		"-k", "--connection=local", "-c|local", "-M|x", "--vault-password-file=x", "--become", "-b", "--lim=x", // no abbreviations
		"site.yml", "-", "--", "--=x", "-Cx", "--check=1",
		"--limit", "--limit=", "-l|-x", "--tags|--check", "-e|-x", "-f|0", "-f|501", "-f|x",
		"-e|@/etc/passwd", "-e|@../x", "-e|@~/x", "-e|@$HOME/x", "-e| @/etc/passwd", "-e|@", "-l|web,@/etc/passwd",
		"-vvvvvvv", "-l|a|-l|b", "-t|a\x00b",
	} {
		got, err := ParseArgs(split(in))
		if orchestrator.CodeOf(err) != orchestrator.CodeInvalid {
			t.Errorf("%q is %q, %v; want it refused as invalid", in, got, err)
		}
	}
	_, err := ParseArgs([]string{"-i", "--user=x", "-f", "0"})
	for _, want := range []string{`"-i"`, "--user=x", "--forks"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name the mistake %s", err, want)
		}
	}
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "|")
}
