// Package inventorytest holds what the tests of inventories share: a table of
// valid ones, and Ansible's own word on a source.
package inventorytest

// key is an SSH host key in the form of a public key file.
const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"

// Valid lists inventories of a workspace `edge` that are in order, by what is odd
// in them. They are trees, so that Ansible
// can read each as its author wrote it, too.
var Valid = map[string]string{
	"one host":                           `{"all":{"hosts":{"web1":{"ansible_host":"192.0.2.1","ansible_user":"root"}}}}`,
	"names alone":                        `{"all":{"hosts":{"web1":{},"web2":null}}}`,
	"no hosts":                           `{"all":{"children":{"web":{}}}}`,
	"null sections":                      `{"all":{"hosts":{"a":{}},"vars":null,"children":{"web":{"hosts":null,"vars":null,"children":null},"db":null}}}`,
	"IPv6":                               `{"all":{"hosts":{"a":{"ansible_host":"2001:db8::1"},"b":{"ansible_host":"::1"},"c":{"ansible_host":"fe80::1%eth0"}}}}`,
	"IPv4 as a name":                     `{"all":{"hosts":{"192.0.2.7":{}}}}`,
	"digits as a name":                   `{"all":{"hosts":{"123":{},"0":{}},"children":{"2024":{"hosts":{"123":{}}}}}}`,
	"domain names":                       `{"all":{"hosts":{"web1.example.com":{},"Web-2.EXAMPLE.com":{},"_srv":{},".hidden":{},"trailing-":{}}}}`,
	"address is a name":                  `{"all":{"hosts":{"a":{"ansible_host":"a.internal"}}}}`,
	"port as a number":                   `{"all":{"hosts":{"a":{"ansible_port":2222}}}}`,
	"port as text":                       `{"all":{"hosts":{"a":{"ansible_port":"2222"},"b":{"ansible_port":"65535"},"c":{"ansible_port":"1"}}}}`,
	"port of a group":                    `{"all":{"children":{"web":{"vars":{"ansible_port":2222},"hosts":{"a":{},"b":{"ansible_port":22}}}}}}`,
	"variables of all":                   `{"all":{"vars":{"ansible_user":"debian","x":1},"hosts":{"a":{},"b":{"ansible_user":"root","x":2}}}}`,
	"group over all":                     `{"all":{"vars":{"x":"all"},"children":{"web":{"vars":{"x":"web"},"hosts":{"a":{}}}},"hosts":{"b":{}}}}`,
	"child over parent":                  `{"all":{"children":{"site":{"vars":{"x":1,"y":1},"children":{"web":{"vars":{"x":2},"hosts":{"a":{}}}}}}}}`,
	"child that sorts before its parent": `{"all":{"children":{"z":{"vars":{"x":"z"},"children":{"a":{"vars":{"x":"a"},"hosts":{"h":{}}}}}}}}`,
	"a tie by name":                      `{"all":{"children":{"beta":{"vars":{"x":"beta"},"hosts":{"h":{}}},"alpha":{"vars":{"x":"alpha"},"hosts":{"h":{}}}}}}`,
	"a tie by case":                      `{"all":{"children":{"Zeta":{"vars":{"x":1},"hosts":{"h":{}}},"alpha":{"vars":{"x":2},"hosts":{"h":{}}},"_u":{"vars":{"x":3},"hosts":{"h":{}}}}}}`,
	"a tie by unicode":                   `{"all":{"children":{"é":{"vars":{"x":1},"hosts":{"h":{}}},"z":{"vars":{"x":2},"hosts":{"h":{}}},"日本":{"vars":{"x":3},"hosts":{"h":{}}}}}}`,
	"diamond":                            `{"all":{"children":{"a":{"vars":{"x":"a"},"children":{"c":{}}},"b":{"vars":{"x":"b","y":"b"},"children":{"c":{"vars":{"z":"c"},"hosts":{"h":{}}}}}}}}`,
	"long and short way":                 `{"all":{"children":{"a":{"children":{"b":{"children":{"c":{"vars":{"x":"c"},"hosts":{"h":{}}}}}}},"c":{},"d":{"vars":{"x":"d"},"hosts":{"h":{}}},"e":{"children":{"f":{"vars":{"x":"f"},"hosts":{"h":{}}}}}}}}`,
	"deep groups":                        `{"a":{"children":{"b":{"children":{"c":{"children":{"d":{"children":{"e":{"children":{"f":{"hosts":{"h":{}},"vars":{"x":"f"}}},"vars":{"x":"e"}}}}}}}}}}}`,
	"groups at the top":                  `{"web":{"hosts":{"a":{}},"vars":{"x":1}},"db":{"hosts":{"b":{}}},"all":{"vars":{"x":0,"y":0}}}`,
	"references at the top":              `{"prod":{"children":{"web":{},"db":{}},"vars":{"x":"prod"}},"web":{"hosts":{"a":{}},"vars":{"x":"web"}},"db":{"hosts":{"b":{}}}}`,
	"a group in pieces":                  `{"all":{"children":{"a":{"children":{"web":{"vars":{"x":1,"y":1}}}},"b":{"children":{"web":{"hosts":{"h":{}},"vars":{"y":2}}}}}}}`,
	"a host in pieces":                   `{"all":{"hosts":{"h":{"z":0}},"children":{"a":{"hosts":{"h":{"x":1,"y":1}}},"b":{"hosts":{"h":{"y":2}}}}}}`,
	"ungrouped":                          `{"all":{"hosts":{"a":{}},"children":{"ungrouped":{"hosts":{"b":{"x":1}},"vars":{"u":1,"x":0}},"web":{"hosts":{"c":{}}}},"vars":{"u":0}}}`,
	"ungrouped at the top":               `{"ungrouped":{"hosts":{"a":{}},"vars":{"u":1}},"web":{"hosts":{"a":{},"b":{}}}}`,
	"the workspace's own group":          `{"all":{"children":{"edge":{"hosts":{"a":{},"b":{}},"vars":{"x":"edge"}},"web":{"hosts":{"a":{}},"vars":{"x":"web"}}}}}`,
	"the workspace's group above":        `{"all":{"children":{"edge":{"vars":{"x":0},"children":{"web":{"hosts":{"a":{}}},"db":{"hosts":{"b":{}},"vars":{"x":1}}}}}}}`,
	"the workspace's group below":        `{"all":{"children":{"site":{"vars":{"x":0,"y":0},"children":{"edge":{"vars":{"x":1},"hosts":{"a":{}}}}}}}}`,
	"local":                              `{"all":{"hosts":{"localhost":{"ansible_connection":"local"},"builder":{"ansible_connection":"local","ansible_python_interpreter":"/usr/bin/python3"}}}}`,
	"localhost by its group":             `{"all":{"children":{"here":{"vars":{"ansible_connection":"local"},"hosts":{"localhost":{},"127.0.0.1":{}}}}}}`,
	"everything that steers":             `{"all":{"hosts":{"a":{"ansible_host":"h","ansible_port":1,"ansible_user":"DOM\\u.ser@x","ansible_connection":"ssh","ansible_python_interpreter":"/usr/bin/env python3","ansible_remote_tmp":"$HOME/.t","ansible_shell_type":"sh","ansible_become":"yes","ansible_become_user":"root","ansible_become_method":"ansible.builtin.sudo","ansible_ssh_private_key_file":"/keys/my id"}}}}`,
	"become in all spellings":            `{"all":{"vars":{"ansible_become":true},"hosts":{"a":{},"b":{"ansible_become":false},"c":{"ansible_become":"No"},"d":{"ansible_become":1}}}}`,
	"variables of ours":                  `{"all":{"vars":{"exocomp_login":"inventory"},"hosts":{"a":{"exocomp_host_key":"` + key + ` root@a\n","exocomp_instance_id":42},"b":{"exocomp_host_key":["` + key + `"],"exocomp_instance_id":"i-1"}}}}`,
	"unicode values":                     `{"all":{"hosts":{"a":{"motd":"grüße, 日本 \ud83d\ude00","esc":"a\"b\\c\n\t\u0000\u007f\u2028<&>"}}}}`,
	"values of all kinds":                `{"all":{"hosts":{"a":{"n":null,"t":true,"f":false,"i":-7,"big":123456789012345678901234567890,"d":0.1,"e":1e3,"s":"","l":[1,[2,{"k":[]}]],"m":{"x":{"y":{"1":{"":"empty key"}}}}}}}}`,
	"template markers":                   `{"all":{"vars":{"v":"{{ lookup('pipe','id') }}"},"hosts":{"a":{"l":["{% if x %}",{"k":"{# c #}"}],"half":"{ {","h":"#jinja2:variable_start_string:'[['\n[[ 1 ]]"}},"children":{"web":{"vars":{"g":["{{{{"]},"hosts":{"a":{}}}}}}`,
	"keywords as names":                  `{"all":{"hosts":{"class":{"self":1,"print":2,"none":3}},"children":{"import":{"hosts":{"class":{}}},"plugin":{"hosts":{"class":{}}}}}}`,
	"groups that only warn":              `{"all":{"children":{"web-servers":{"hosts":{"a":{}},"vars":{"x":1}},"eu.west":{"hosts":{"a":{}},"vars":{"x":2}}}}}`,
	"maps replace maps":                  `{"all":{"vars":{"m":{"a":1,"b":1}},"children":{"web":{"vars":{"m":{"b":2}},"hosts":{"h":{},"i":{"m":{}}}}}}}`,
	"sections as names":                  `{"all":{"hosts":{"hosts":{},"children":{}},"children":{"vars":{"hosts":{"hosts":{}},"vars":{"hosts":1}}}}}`,
}
