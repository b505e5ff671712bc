"""Bash source of two shells: the program's shell, which serves calls, and the shell of the tests, which sends them.

``languages.bash`` starts both shells. Each message is a list of words that end with NUL. A request consists of:

1. the number of its words,
2. ``here`` (run the command in the program's own shell, so that later calls see its variables) or ``sub`` (run the
   command in a subshell),
3. the names of variables,
4. the standard input,
5. the number of words that describe arrays, and these words,
6. the command.

The reply is the output, the status and the standard error, then the variables, then an empty word. A variable is its
name, its kind (``a``, ``A`` or ``s``), its number of items, and its items as pairs (key, value). The program's standard
error is also written to the standard error of the execution.
"""

from __future__ import annotations

import re
import shlex

# Writes the variables with these names.
_SHOW = r"""
__show() {
  local __one __key __kind
  for __one; do
    [[ $__one =~ ^[A-Za-z_][A-Za-z0-9_]*$ && $__one != __* ]] || continue
    __kind=$(declare -p "$__one" 2>/dev/null) || continue
    case $__kind in
      "declare -a"*) __kind=a ;;
      "declare -A"*) __kind=A ;;
      "declare -n"*) continue ;;
      *) [[ -v $__one ]] && printf '%s\0' "$__one" s 1 0 "${!__one}"; continue ;;
    esac
    local -n __all=$__one
    printf '%s\0' "$__one" "$__kind" "${#__all[@]}"
    for __key in "${!__all[@]}"; do printf '%s\0' "$__key" "${__all[$__key]}"; done
    unset -n __all
  done
}
"""

SERVE = (
    _SHOW
    + r"""
__take() {
  local __one __kind __count
  while (( $# )); do
    __one=$1 __kind=$2 __count=$3; shift 3
    unset "$__one"; declare -g"$__kind" "$__one"
    local -n __all=$__one
    while (( __count-- > 0 )); do __all[$1]=$2; shift 2; done
    unset -n __all
  done
}
# Reads an output without its NUL bytes, as a command substitution does.
__read() {
  local -n __all=__$1
  local __part
  __all=
  while IFS= read -r -d '' __part; do __all+=$__part; done <"$__calls.$1"
  __all+=$__part
}
set +eu  # with `set -e` of the program, the first failing call would end this shell
__calls=/tmp/.call.$RANDOM$RANDOM
while IFS= read -r -d '' -u 4 __count; do
  __words=()
  for ((__i = 0; __i < __count; __i++)); do IFS= read -r -d '' -u 4 __word; __words+=("$__word"); done
  if [[ ${__words[0]} == :names ]]; then
    { compgen -A function; printf '\0'; declare -Fx; printf '\0'; } >&3
    continue
  fi
  __mode=${__words[0]} __wanted=${__words[1]} __status=0
  printf '%s' "${__words[2]}" >"$__calls.in"
  __i=${__words[3]}
  (( __i == 0 )) || __take "${__words[@]:4:__i}"
  __words=("${__words[@]:4 + __i}")
  if [[ $__mode == here ]]; then
    "${__words[@]}" <"$__calls.in" >"$__calls.out" 2>"$__calls.err" 3>&- 4<&- || __status=$?
  else
    ("${__words[@]}") <"$__calls.in" >"$__calls.out" 2>"$__calls.err" 3>&- 4<&- || __status=$?
  fi
  __read out
  __read err
  printf '%s' "$__err" >&2
  printf '%s\0' "$__out" "$__status" "$__err" >&3
  __show $__wanted >&3
  printf '\0' >&3
done
"""
)

# Defines one function for the tests per function of the program. The tests run in a subshell, because an error in an
# expression ends a subshell, whereas the main shell would continue with the next line.
_DRIVE = (
    _SHOW
    + r"""
exec 10<&-
__main=$$
__fail() { kill -KILL $__main $$; exit 1; }
# Arithmetic in the tests evaluates the program's output. It must not name a variable of the tests or run a command.
umask 0  # the program has another user id
mktemp() {
  local __made
  __made=$(command mktemp "$@") && chmod a+rwX "$__made" && printf '%s\n' "$__made"
}
[() { builtin [ "$@" || __refuse_errors $?; }
test() { builtin test "$@" || __refuse_errors $?; }
# An expression with an error is not false: with ``-ne``, a wrong output would pass.
__refuse_errors() { (( $1 < 2 )) || __fail; return "$1"; }
__is_safe() {
  [[ $__unquoted && $1 == *[[:space:]]* && $1 =~ (^|[[:space:]])(-[a-z]+|[=!'<>|&:()'*/%+-]+)([[:space:]]|$) ]] \
    && return 1
  [[ $__searched && ( $1 != *[[:alnum:]]* || $1 == *[]['*?+|^$\']* ) ]] && return 1
  [[ $__evaluated ]] && ! __is_value "$1" && return 1
  [[ $__patterns && $1 == *[]['*?()|+@!^\\']* ]] && return 1
  [[ $__arithmetic ]] || return 0
  [[ $__textual && $1 =~ [^[:space:]].*[-+] || $__textual && $1 == *['*/%<>=!&|^~?:,()']* ]] && return 1
  [[ $1 == *'['* && $1 == *[\`\$]* ]] && return 1
  local __word -
  set -f
  for __word in ${1//[^A-Za-z0-9_]/ }; do
    [[ $__word == [A-Za-z_]?* || $__word == [A-Za-z_] && ! $1 =~ [[:alnum:]_][[:space:]]+[[:alnum:]_] ]] || continue
    [[ -v $__word ]] && return 1
  done
  return 0
}
# Another program, such as bc, evaluates the output: it must be numbers and words without operators.
__is_value() {
  [[ $1 =~ ^[[:space:]]*[-+]?[A-Za-z0-9_.,:]*([ $'\t']+[-+]?[A-Za-z0-9_.,:]+)*[[:space:]]*$ ]] || return 1
  local __word -
  set -f
  for __word in $1; do
    case $__word in if|else|or|and|not|in|is|for|while|quit|halt|getline|exit|next|lambda) return 1 ;; esac
  done
}
__call() {
  local __mode=here __in= __out __status __err __name __value __key __kind __count __asked=$__wanted __lent=()
  [[ $BASH_SUBSHELL -gt 1 || $$ != "$__main" ]] && __mode=sub
  for __name in "${@:2}"; do
    [[ " $__read " == *" $__name "* ]] || continue
    __asked+=" $__name"
    [[ $(declare -p "$__name" 2>/dev/null) == "declare -"[aA]* ]] || continue
    while IFS= read -r -d '' __value; do __lent+=("$__value"); done < <(__show "$__name")
  done
  [[ $__pipes && -p /dev/stdin ]] && IFS= read -r -d '' __in
  [[ -z $__together ]] || IFS= read -r -N 1 -u 8 || __fail
  printf '%s\0' "$(( $# + ${#__lent[@]} + 4 ))" "$__mode" "$__asked" "$__in" "${#__lent[@]}" "${__lent[@]}" "$@" >&4
  IFS= read -r -d '' -u 6 __out && IFS= read -r -d '' -u 6 __status && IFS= read -r -d '' -u 6 __err || __fail
  [[ $__status =~ ^[0-9]{1,3}$ ]] && __is_safe "$__out" || __fail
  while IFS= read -r -d '' -u 6 __name || __fail; do
    [[ $__name ]] || break
    [[ " $__asked " == *" $__name "* ]] && IFS= read -r -d '' -u 6 __kind && IFS= read -r -d '' -u 6 __count || __fail
    [[ $__kind == [aAs] && $__count =~ ^[0-9]{1,5}$ ]] || __fail
    [[ $__kind == s ]] || { unset "$__name"; declare -g"$__kind" "$__name"; }
    while (( __count-- > 0 )); do
      IFS= read -r -d '' -u 6 __key && IFS= read -r -d '' -u 6 __value && __is_safe "$__value" || __fail
      [[ $__kind == A && $__key ]] && __is_safe "$__key" || [[ $__kind != A && $__key =~ ^[0-9]{1,9}$ ]] || __fail
      if [[ $__kind == s ]]; then printf -v "$__name" '%s' "$__value"; continue; fi
      local -n __all=$__name
      __all[$__key]=$__value
      unset -n __all
    done
  done
  [[ -z $__together ]] || printf x >&9
  printf '%s' "$__err" >&2
  printf '%s' "$__out"
  return "$__status"
}
# Commands that tests use themselves, so the program does not replace them. The same holds for assertions, unless the
# tests use no other function of the program.
__is_tool() {
  [[ $(type -t "$1") == @(builtin|keyword) || " $__tools " == *" $1 "* || $__others && $1 == assert?* ]]
}
printf '%s\0' 1 :names >&4
IFS= read -r -d '' -u 6 __names && IFS= read -r -d '' -u 6 __shown || __fail
__others=
for __name in $__names; do
  [[ " $__used " == *" $__name "* && $__name != assert?* ]] && __others=yes
done
for __name in $__names; do
  [[ $__name =~ ^[A-Za-z_][A-Za-z0-9_]*$ && $__name != __* ]] || continue
  [[ $__name == "$__entry" ]] || ! __is_tool "$__name" || continue
  eval "$__name() { __call $__name \"\$@\"; }"
  [[ $'\n'"$__shown"$'\n' != *$'\n'"declare -fx $__name"$'\n'* ]] || export -f "$__name"
done
export -f __call __show __is_safe __is_value __fail __refuse_errors [ test
export __main __wanted __read __pipes __patterns __arithmetic __textual __together __unquoted __searched __evaluated
unset __name __names __shown __others
(
[[ -z $__wanted ]] || __call :
"""
)

# Commands that tests use themselves.
_TOOLS = """
    awk base64 basename bash bc cat chmod cmp column comm cp csplit cut date dd diff dirname egrep env expand expr
    factor false fgrep find fmt fold gawk getopt grep gzip hostname iconv mkfifo nl nproc numfmt printenv readlink
    realpath sha1sum shuf strings tar truncate tsort unexpand zcat
    head jq ls md5sum mkdir mktemp mv node od paste perl python3 rev rm sed seq sha256sum sh sleep sort sqlite3 stat
    b2sum base32 bunzip2 bzip2 cksum crc32 dc diff3 file gunzip hd hexdump iconv ln md5 openssl rmdir sdiff sha224sum
    sha384sum sha512sum unxz unzip uuencode which xz zcmp zdiff zgrep zip
    tac tail tee timeout touch tr true uniq wc xargs xxd
"""
_ARITHMETIC = re.compile(
    r"\(\(|-(eq|ne|lt|le|gt|ge)\b|\blet\b|\b(declare|typeset|local)\s+-\w*i|\$\[|\$\{[^}]*:|\[\s*[\"']?\$"
)
_TEXT_IN_ARITHMETIC = re.compile(r"\(\([^\n]*\$(?!\{#|[#?])[({\w]")
_PATTERN = re.compile(
    r"\[\[[^\n]*(==|!=|=~|\s=)\s*[^\s\"']*\$|\$\{\w+[#%/][^}]*\$|(\bin|;;)\s*\(?[^\s\"')]*\$[^\n]*\)", re.MULTILINE
)
_TOGETHER = re.compile(
    r"<\(|>\(|(?<![&>])&(?![&>\d])|\bcoproc\b|\bxargs\b.*\s-\w*P"
)  # functions may run at the same time
_EXECUTES = re.compile(
    r"\beval\b[^\n]*\$|(\bsource|^\s*\.)\s+<\(|\bbash\s+(-c\s+\"?\$\(|<\()|=~\s*\$\("
    r"|\b(declare|typeset)\s+-f\b(?![^|;\n]*>\s*/dev/null)|\btype\s+(?!-)[^|;\n>]*(\||\))",
    re.MULTILINE,
)
_UNQUOTED = re.compile(
    r"(?<!\[)\[\s(?:[^\]\n\"]|\"[^\"\n]*\")*(?<![\"\w])\$[({\w]|\b(test|expr)\s[^\n]*(?<![\"\w])\$[({\w]"
)
_ASSIGNED = re.compile(r"-v\s*\w+=\"[^\"\n]*\"|--arg(json)?\s+\w+\s+\"[^\"\n]*\"")
_EVALUATED = re.compile(  # another program evaluates a text that contains an output
    r"\bbc\b|\b(awk|gawk|mawk|sed|jq)\s+(-[\w-]+\s+)*\"[^\"]*\$[({A-Za-z_]|\bsqlite3\s+\S+\s+\"[^\"]*\$"
    r"|\b(python3?|perl|node|ruby)\s+-\w*[cepn]\s*\"[^\"]*\$[({A-Za-z_]|\b(python3?|perl|node|awk)\b[^\n]*<<-?\s*\w"
)
_SEARCHED = re.compile(r"\bgrep\s+(?:-(?!\w*F)[\w-]+\s+)*\"?\$(?:\(|\{?(\w+))")
_NAMING = re.compile(r"(?:\w\[\s*|\$\{!)([A-Za-z_]\w*)")
_READS_A_STREAM = re.compile(r"(?<!\|)\|\s*(while|until|for|\{|\()|\bdone\s*<|\bread\b")
_VARIABLE = re.compile(r"\$\{?[#!]?([A-Za-z_]\w*)")
_WRAPPER = re.compile(
    r"^candidate\(\) \{\s*(\w+) \"\$@\"\s*\}", re.MULTILINE
)  # the tests of MultiPL-E name the function here
_NAME = re.compile(r"(?<![\w${#!])([A-Za-z_]\w*)")
_EXPRESSION = re.compile(r"(?<!\$)\(\(((?:(?!\)\))[^\n])*)\)\)")
_ASSIGNS = re.compile(r"(?<![=!<>])=(?!=)|\+\+|--")
_OF_THE_SHELL = re.compile(r"_|BASH\w*|PATH|HOME|IFS|PWD|OLDPWD|RANDOM|SECONDS|LINENO|REPLY|OPT\w+|E?UID|PPID|FUNCNAME")


def tests_script(entry_point: str, cases: list[str]) -> str:
    """Return the script that runs the tests. It exits with status 0 if they pass.

    Tests that execute an output of the program, or show the source of a function, always fail in the strict run.
    """
    tests = "\n".join(cases)
    if _EXECUTES.search(tests):
        return "exit 1"
    wrapper = _WRAPPER.search(tests)
    settings = {
        "__entry": wrapper[1] if wrapper else entry_point,
        "__tools": " ".join(_TOOLS.split()),
        "__arithmetic": "yes" if _ARITHMETIC.search(tests) or _names_a_variable(tests) else "",
        "__together": "yes" if _TOGETHER.search(tests) else "",
        "__textual": "yes" if _TEXT_IN_ARITHMETIC.search(tests) else "",
        "__patterns": "yes" if _PATTERN.search(tests) else "",
        "__unquoted": "yes" if _UNQUOTED.search(tests) else "",
        "__searched": "yes" if _searches(tests) else "",
        "__evaluated": "yes" if _EVALUATED.search(_ASSIGNED.sub("", tests)) else "",
        "__used": " ".join(sorted(set(_NAME.findall(tests)))),
        "__pipes": "" if _READS_A_STREAM.search(tests) else "yes",
        "__wanted": " ".join(variables_of_the_program(tests)),
        "__read": " ".join(sorted(name for name in set(_VARIABLE.findall(tests)) if _is_free(name))),
    }
    lines = [f"{name}={shlex.quote(value)}" for name, value in settings.items()]
    return "\n".join([*lines, _DRIVE, tests, ")"])


def _searches(tests: str) -> bool:
    """Return True if ``grep`` in the tests searches for a pattern that is an output of the program."""
    return _uses_output(tests, _SEARCHED)


def _names_a_variable(tests: str) -> bool:
    """Return True if an output of the program is the index of an array, or the name of a variable, in the tests."""
    return _uses_output(tests, _NAMING)


def _uses_output(tests: str, place: re.Pattern[str]) -> bool:
    """Return True if ``place`` matches a command substitution, or a variable that contains the output of a command."""
    outputs = set(re.findall(r"(\w+)=\"?\$\(", tests))
    return any(not found[1] or found[1] in outputs for found in place.finditer(tests))


def variables_of_the_program(tests: str) -> list[str]:
    """Return the names of variables that the tests read but never assign, so that the program must set them."""
    compared = [text for text in _EXPRESSION.findall(tests) if not _ASSIGNS.search(text)]
    others = _EXPRESSION.sub(lambda found: "" if found[1] in compared else found[0], tests)
    read = set(_VARIABLE.findall(tests)) | set(_NAME.findall(" ".join(compared)))
    return sorted(name for name in read - set(_NAME.findall(others)) if _is_free(name))


def _is_free(name: str) -> bool:
    """Return True if the program may set the variable ``name``.

    Variables of the shell and of the harness are excluded.
    """
    return not name.startswith("__") and not _OF_THE_SHELL.fullmatch(name)
