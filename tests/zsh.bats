# Completion in zsh, in a real one on a terminal.  What is completed is decided
# by the completion for bash, of which docs.bats is the test.

load helper

setup_file() {
	ark_files mini
	ark create box-one
	ark create box-two
	ark snap box-one golden
	# A zsh that writes its line, as it stands at ^N, into the file lines.
	cat >"$work/complete" <<-'END'
	zmodload zsh/zpty
	zpty z zsh -f -i
	zpty -w z "
		PS1= fpath=($1 \$fpath)
		autoload -U compinit && compinit -u -D
		write() { print -r -- \"\$BUFFER|\" >>lines; BUFFER= }
		zle -N write
		bindkey '^I' complete-word '^N' write
		print ready >>lines"
	while [[ ! -s lines ]]; do sleep 0.1; done
	while IFS= read -r line; do
		zpty -w -n z $line$'\t\x0e'
	done
	zpty -w z 'print done >>lines; exit'
	while ! grep -qx done lines; do sleep 0.1; done
	zpty -d z
	END
}

teardown_file() {
	ark_end
}

# completed FOLDER: a tab behind each line before the bar gives what is behind
# it.  FOLDER has _ark.
completed() {
	local file=$BATS_TEST_TMPDIR/lines
	cat >"$BATS_TEST_TMPDIR/table"
	cd "$BATS_TEST_TMPDIR" || return
	mkdir some-folder
	cut -d '|' -f 1 table | timeout "$(within 60)" zsh -f "$work/complete" "$1"
	equal "$(sed '1d;$d' lines)" "$(cut -d '|' -f 2- table)"
}

@test "verbs, words, options, values, and names of what there is" {
	completed "$tree/share/zsh-completion" <<-'END'
	ark unpa|ark unpause |
	ark help unpa|ark help unpause |
	ark -R /tmp unpa|ark -R /tmp unpause |
	ark run --me|ark run --memory |
	ark rm --fo|ark rm --force |
	ark image b|ark image build |
	ark image build mi|ark image build mini |
	ark ps -o iso|ark ps -o isolation |
	ark rm -f b|ark rm -f box-|
	ark rm -f box-t|ark rm -f box-two |
	ark exec box-o|ark exec box-one |
	ark restore g|ark restore golden |
	ark run m|ark run mini |
	ark cp box-t|ark cp box-two:|
	ark cp som|ark cp some-folder/|
	ark cp 'some|ark cp 'some-folder/|
	ark exec box-one -- --he|ark exec box-one -- --he|
	ark nonsense b|ark nonsense b|
	END
}

@test "installed, it finds what it asks" {
	expect 0 make -s -C "$tree" install DESTDIR="$work/dest" PREFIX=/usr
	PATH=$work/dest/usr/bin:$PATH
	completed "$work/dest/usr/share/zsh/site-functions" <<-'END'
	ark unpa|ark unpause |
	ark stop --ti|ark stop --time |
	ark rm -f box-t|ark rm -f box-two |
	END
}
