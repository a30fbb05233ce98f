# The dispatcher, help, versions, and what is refused before anything happens.

load helper

setup_file() {
	ark_files
}

teardown_file() {
	ark_end
}

programs='ark ark-cp ark-disk ark-exec ark-gc ark-image ark-ps ark-run ark-vm ark-doctor'

@test "every program has --help on stdout and --version" {
	for program in $programs; do
		expect 0 "$program" --help
		silent
		[ "$(wc -l <"$out")" -ge 3 ] || wrong "$program: short help"
		grep -qi '^usage: ark' "$out" || wrong "$program: no usage line"
		expect 0 "$program" --version
		silent
		[[ $stdout =~ ^ark[a-z-]*\ [0-9]+\.[0-9]+$ ]] ||
			wrong "$program: version"
	done
}

@test "every verb of the table has help, and is run" {
	expect 0 ark help
	silent
	help=$stdout
	while IFS=$'\t' read -r verb _ _ text; do
		[[ $verb != '#'* && $verb ]] || continue
		[[ $help == *"  $verb "*"$text"* ]] || wrong "help lacks $verb"
		expect 0 ark help "$verb"
		[[ $stdout == *"$text"* ]] || wrong "help $verb"
		expect 0 ark "$verb" --help
		silent
		[[ $stdout == *[Uu]sage:\ ark* ]] || wrong "$verb --help"
	done <"$tree/share/commands"
}

@test "help and no verb" {
	expect 0 ark --help
	equal "$stdout" "$(ark help)"
	expect 64 ark
	[ ! -s "$out" ] || wrong 'help of a mistake on stdout'
	[[ $stderr == *Usage* ]] || wrong 'no usage'
}

@test "an unknown verb is 64, one line, and a suggestion" {
	while read -r verb hint; do
		expect 64 ark "$verb"
		says "$hint"
	done <<-'END'
	exce	ark help
	star	start
	stopp	stop
	insp	inspect
	build	ark image build
	destroy	ark rm
	delete	ark rm
	ssh	ark shell
	list	ark ps
	status	ark ps
	stats	ark top
	END
	for verb in '' . .. ../bin/ark-vm a/b 'ps ' $'ps\n' '*' Ps -x --nonsense \
		$'\e[31m'; do
		expect 64 ark "$verb"
		says ''
	done
}

@test "what fingers know from other tools is refused with the alternative" {
	expect 64 ark run -v /tmp:/mnt mini
	says 'ark cp'
	expect 64 ark run --volume /tmp:/mnt mini
	says 'ark cp'
	expect 64 ark run --privileged mini
	says 'privileged'
	expect 64 ark run --restart always mini
	says 'ark wait'
	expect 64 ark build .
	says 'ark image build'
}

@test "options that are unknown, lack their value, or are of another verb" {
	failed=()
	while read -r -a words; do
		expect 64 ark "${words[@]}" && says '' || failed+=("${words[*]}")
	done <<-'END'
	create --nonsense
	create -f a
	create -m
	create -m 0
	create -m -5
	create -m much
	create -m 1Q
	create -m 63M
	create -m 9999999T
	create --cpus 0
	create --cpus -1
	create --cpus 256
	create --cpus two
	create --disk 1K
	create --disk 65T
	create --disk x
	create a b
	start
	start -f a
	stop
	stop -t a
	stop -t -1 a
	stop -t 5x a
	kill
	pause
	resume
	wait
	inspect
	inspect --nonsense a
	logs
	logs a b
	rm
	rm --nonsense
	ps --nonsense
	ps extra
	ps -o
	ps -o nonsense
	ps -o name,
	ps -o ,
	exec
	exec --nonsense a true
	exec a
	exec a --
	exec --timeout x a true
	exec --timeout -1 a true
	exec --status-fd x a true
	exec --status-fd 77 a true
	exec --status-fd -1 a true
	exec -e
	exec -e =x a true
	exec ls
	exec ls a b
	exec logs a
	exec logs a x
	exec logs a -1
	exec logs a 99999999999999999999
	exec attach a
	exec wait a
	exec kill a
	exec kill -s NONSENSE a 1
	exec kill -s 0 a 1
	exec kill -s 65 a 1
	exec kill -s -9 a 1
	shell
	shell a b
	cp
	cp a
	cp a b
	cp a:/x b:/y
	cp --nonsense a b:/
	run --nonsense
	run --name
	run -m x
	run --timeout x -- true
	run --status-fd 77 -- true
	run --cpus 0
	gc extra
	gc --nonsense
	image
	image nonsense
	image build
	image build mini mini
	image inspect
	image rm
	image ls extra
	disk
	disk nonsense
	disk clone mini
	disk resize a
	disk resize a x
	disk import /tmp
	doctor --nonsense
	doctor extra
	END
	equal "${failed[*]}" '' 'wrongly taken'
	expect 64 ark create -m '1 ' a
	says '1 '
	expect 64 ark create -m '' a
	says ''
	expect 64 ark create --cpus '' a
	says ''
	expect 64 ark exec --timeout '' a true
	says ''
	equal "$(ls -A "$ARK_ROOT/vm")" '' 'something was created'
}

@test "unknown sandboxes are 66, and rm -f of nothing is 0" {
	failed=()
	while read -r -a words; do
		expect 66 ark "${words[@]}" && says "'nosuch'" ||
			failed+=("${words[*]}")
	done <<-'END'
	start nosuch
	stop nosuch
	kill nosuch
	pause nosuch
	resume nosuch
	wait nosuch
	logs nosuch
	logs -f nosuch
	inspect nosuch
	rm nosuch
	exec nosuch true
	exec ls nosuch
	exec logs nosuch 1
	exec kill nosuch 1
	exec wait nosuch 1
	exec attach nosuch 1
	shell nosuch
	cp /etc/hostname nosuch:/
	cp nosuch:/etc/passwd /tmp
	disk resize nosuch 2G
	END
	equal "${failed[*]}" '' 'wrongly taken'
	expect 0 ark rm -f nosuch
	quiet
	expect 66 ark create --image nosuch a
	says "'nosuch'"
	expect 66 ark run nosuch
	says "'nosuch'"
	expect 66 ark run --rm nosuch -- true
	says "'nosuch'"
	expect 66 ark image inspect nosuch
	says "'nosuch'"
	expect 66 ark image rm nosuch
	says "'nosuch'"
	expect 66 ark image build nosuch
	says "'nosuch'"
	expect 66 ark disk clone nosuch a
	says "'nosuch'"
	equal "$(ls -A "$ARK_ROOT/vm")" '' 'something was created'
}

@test "not root is 77, told once, and changes nothing" {
	remember
	# A copy that everybody may run, as an installed one is.
	make -s -C "$tree" install DESTDIR="$work/open" PREFIX=
	chmod 755 "$work" "$work/open"
	before=$(find "$ARK_ROOT" "$ARK_RUN" | sort)
	failed=()
	while read -r -a words; do
		expect 77 setpriv --reuid 65534 --regid 65534 --clear-groups \
			"$work/open/bin/ark" "${words[@]}" &&
			says 'must be root' || failed+=("${words[*]}")
	done <<-'END'
	run mini
	run --rm mini -- true
	create a
	start a
	stop a
	kill a
	pause a
	resume a
	wait a
	logs a
	inspect a
	rm a
	rm -f a
	exec a true
	shell a
	cp /etc/hostname a:/
	ps
	ps --json
	gc
	image ls
	image inspect mini
	image rm mini
	image build mini
	disk ls
	END
	equal "${failed[*]}" '' 'wrongly done'
	equal "$(find "$ARK_ROOT" "$ARK_RUN" | sort)" "$before" 'changed'
	expect 0 setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$work/open/bin/ark" help
	rm -r "$work/open"
	nothing_new
}

@test "-R, relative and long roots" {
	mkdir "$work/other"
	cd "$work"
	expect 0 ark -R other ps -q
	quiet
	[ -d "$work/other/vm" ]
	expect 0 ark --root "$work/other" ps -q
	quiet
	expect 64 ark -R
	says '-R'
	expect 78 env ARK_ROOT=relative ark-ps
	says relative
	expect 78 env ARK_RUN=relative ark-gc
	says relative
	touch file
	expect 71 env ARK_ROOT="$work/file" ark-ps
	says "$work/file"
	rm -r other file
}

@test "a broken configuration is told with its line" {
	cp "$ARK_CONF" "$work/good.conf"
	echo 'colour = red' >>"$ARK_CONF"
	expect 78 ark create a
	says ':5: colour'
	chmod 666 "$work/good.conf"
	expect 78 env ARK_CONF="$work/good.conf" ark create a
	says 'good.conf'
	expect 78 env ARK_CONF="$work/nosuch" ark create a
	says nosuch
	equal "$(ls -A "$ARK_ROOT/vm")" '' 'something was created'
	chmod 600 "$work/good.conf"
	mv "$work/good.conf" "$ARK_CONF"
}

@test "listing nothing" {
	expect 0 ark ps -q
	quiet
	expect 0 ark ps --json
	quiet
	expect 0 ark ps --no-header
	quiet
	expect 0 ark ps
	[[ $stdout == NAME*STATE*IMAGE*CPUS*MEMORY*DISK*AGE*ISOLATION ]] ||
		wrong header
	expect 0 ark image ls -q
	quiet
	expect 0 ark gc
	quiet
}
