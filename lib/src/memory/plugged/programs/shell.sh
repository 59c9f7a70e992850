# Speaks memtrial-memory/1 and says in its record what of the machine it could reach.
number() { printf '%s' "$1" | sed 's/.*"id":\([0-9]*\).*/\1/'; }
reached() {
  { cat "$1" >/dev/null 2>&1 && printf 'file '; }
  { (exec 3<>"/dev/tcp/127.0.0.1/$2") 2>/dev/null && printf 'port '; }
  { echo x > "$1" 2>/dev/null && printf 'write '; }
  { [ -n "$HOST_SECRET" ] && printf 'variable '; }
  { [ -n "$OPENAI_BASE_URL" ] && printf 'model '; }
  printf 'pid-%s' "$$"
}
while IFS= read -r line; do
  id=$(number "$line")
  case $line in
    *'"method":"hello"'*) result='{"protocol":"memtrial-memory/1","name":"shell","version":"1"}' ;;
    *'"method":"ingest"'*) echo run >> "$MEMTRIAL_STATE/runs"; result='{}' ;;
    *'"method":"retrieve"'*)
      result="{\"delivery\":{\"records\":[{\"source\":\"acme__widget-3\",\"text\":\"$(reached "$1" "$2")\"}]}}" ;;
    *) result='{}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
