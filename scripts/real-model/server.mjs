// An OpenAI-compatible server of a GGUF model on llama.cpp (npm: node-llama-cpp): chat completions, streamed or not.
//
//   node server.mjs MODEL.gguf [PORT_FILE]
//
// One request at a time on one thread. The chat template is the model's own. Tools are described in the system message
// and what the model writes between <tool_call> tags is handed on as it is, malformed or not, as servers do.
import { createServer } from "node:http";
import { writeFileSync } from "node:fs";
import { Template } from "@huggingface/jinja";
import { getLlama } from "node-llama-cpp";

const CONTEXT = 8192;
const [modelPath, portFile] = process.argv.slice(2);
if (!modelPath) {
  console.error("usage: node server.mjs MODEL.gguf [PORT_FILE]");
  process.exit(2);
}

const llama = await getLlama({ gpu: false, build: "never", maxThreads: 1, logLevel: "error" });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({ contextSize: CONTEXT, threads: 1 });
const sequence = context.getSequence();
const template = new Template(model.fileInfo.metadata.tokenizer.chat_template);

const failure = (status, message, code) => Object.assign(new Error(message), { status, code });

function prompt({ messages, tools }) {
  if (!Array.isArray(messages) || messages.length === 0) throw failure(400, "messages: a list is expected");
  const plain = messages.map(({ role, content, tool_calls }) => {
    const text = Array.isArray(content) ? content.map((part) => part.text ?? "").join("\n") : (content ?? "");
    const calls = (tool_calls ?? []).map(({ function: call }) => {
      return `<tool_call>\n{"name": ${JSON.stringify(call.name)}, "arguments": ${call.arguments}}\n</tool_call>`;
    });
    return { role: role === "developer" ? "system" : role, content: [text, ...calls].filter(Boolean).join("\n") };
  });
  if (tools?.length) {
    const lines = tools.map((tool) => JSON.stringify(tool.function));
    const text = `Tools:\n${lines.join("\n")}\nTo use one, write\n<tool_call>\n{"name": "…", "arguments": {…}}\n</tool_call>`;
    if (plain[0].role === "system") plain[0].content += `\n\n${text}`;
    else plain.unshift({ role: "system", content: text });
  }
  return template.render({ messages: plain, add_generation_prompt: true, bos_token: "", eos_token: "" });
}

// Yields pieces of text; returns why it stopped and what was counted.
async function* generate(body, gone) {
  const tokens = model.tokenize(prompt(body), true);
  const room = Math.min(body.max_completion_tokens ?? body.max_tokens ?? 512, CONTEXT - tokens.length - 1);
  if (room < 1) {
    throw failure(400, `the prompt has ${tokens.length} tokens, the context window ${CONTEXT}`, "context_length_exceeded");
  }
  // What the last request left in the context is kept as far as it is the same; the last token is always evaluated.
  const held = sequence.contextTokens;
  let same = 0;
  while (same < held.length && same < tokens.length - 1 && held[same] === tokens[same]) same += 1;
  if (same < held.length) await sequence.eraseContextTokenRanges([{ start: same, end: held.length }]);
  const options = { temperature: body.temperature ?? 0.8, topP: body.top_p ?? 1, seed: body.seed, yieldEogToken: true };
  const stops = [body.stop ?? []].flat();
  const written = [];
  let [text, finish_reason] = ["", "length"];
  for await (const token of sequence.evaluate(tokens.slice(same), options)) {
    if (model.isEogToken(token)) {
      finish_reason = "stop";
      break;
    }
    written.push(token);
    // A token may end in the middle of a character: it is told once it is whole.
    const whole = model.detokenize(written);
    const stop = stops.map((mark) => whole.indexOf(mark)).filter((at) => at >= 0);
    const end = stop.length ? Math.min(...stop) : whole.endsWith("\uFFFD") ? text.length : whole.length;
    if (end > text.length) yield whole.slice(text.length, end);
    text = whole.slice(0, Math.max(end, text.length));
    if (stop.length) {
      finish_reason = "stop";
      break;
    }
    if (written.length >= room || gone()) break;
  }
  const usage = {
    prompt_tokens: tokens.length,
    completion_tokens: written.length,
    total_tokens: tokens.length + written.length,
    prompt_tokens_details: { cached_tokens: same },
  };
  return { text, finish_reason, usage };
}

// The text outside <tool_call> tags, and the calls; an unclosed tag reaches to the end.
function split(text, id) {
  const tool_calls = [];
  const content = text.replace(/<tool_call>([\s\S]*?)(?:<\/tool_call>|$)/g, (_, inner) => {
    const name = inner.match(/"name"\s*:\s*"([^"]*)"/)?.[1] ?? "";
    let args = inner.match(/"arguments"\s*:\s*([\s\S]*)$/)?.[1]?.trim() ?? inner.trim();
    if (args.endsWith("}")) args = args.slice(0, -1).trim();
    tool_calls.push({ id: `call_${id}_${tool_calls.length}`, type: "function", function: { name, arguments: args } });
    return "";
  });
  return { content: content.trim() || null, tool_calls };
}

let count = 0;
async function complete(body, response) {
  const id = (count += 1);
  const head = { id: `chatcmpl-${id}`, created: Math.floor(Date.now() / 1000), model: body.model ?? "local" };
  const pieces = generate(body, () => response.destroyed);
  const chunk = (fields) => response.write(`data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", ...fields })}\n\n`);
  const choice = (delta, finish_reason = null) => ({ choices: [{ index: 0, delta, finish_reason }] });
  // The first piece comes before the head, so that a refused request gets its status.
  let next = await pieces.next();
  if (body.stream) {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    chunk(choice({ role: "assistant", content: "" }));
  }
  // From a tag on nothing is told until the end: the call must be told whole.
  let [told, all] = [0, ""];
  for (; !next.done; next = await pieces.next()) {
    all += next.value;
    const mark = all.indexOf("<");
    const sure = mark < 0 || !body.tools?.length ? all.length : mark;
    if (body.stream && sure > told) chunk(choice({ content: all.slice(told, sure) }));
    told = Math.max(told, sure);
  }
  const { text, finish_reason, usage } = next.value;
  const { content, tool_calls } = body.tools?.length ? split(text, id) : { content: text, tool_calls: [] };
  const reason = tool_calls.length ? "tool_calls" : finish_reason;
  if (!body.stream) {
    const message = { role: "assistant", content, ...(tool_calls.length && { tool_calls }) };
    const choices = [{ index: 0, message, finish_reason: reason }];
    response.writeHead(200, { "Content-Type": "application/json" });
    response.end(JSON.stringify({ ...head, object: "chat.completion", choices, usage }));
    return;
  }
  const rest = tool_calls.length ? "" : text.slice(told);
  if (rest) chunk(choice({ content: rest }));
  tool_calls.forEach((call, index) => chunk(choice({ tool_calls: [{ index, ...call }] })));
  chunk(choice({}, reason));
  if (body.stream_options?.include_usage) chunk({ choices: [], usage });
  response.end("data: [DONE]\n\n");
}

let turn = Promise.resolve();
const server = createServer(async (request, response) => {
  const refuse = (status, message, code = null) => {
    if (response.headersSent) return response.destroy();
    response.writeHead(status, { "Content-Type": "application/json" });
    response.end(JSON.stringify({ error: { message, type: "invalid_request_error", param: null, code } }));
  };
  if (request.url.endsWith("/models")) {
    response.writeHead(200, { "Content-Type": "application/json" });
    return response.end(JSON.stringify({ object: "list", data: [{ id: "local", object: "model" }] }));
  }
  if (request.method !== "POST" || !request.url.endsWith("/chat/completions")) return refuse(404, "no such address");
  const bytes = [];
  for await (const part of request) bytes.push(part);
  let body;
  try {
    body = JSON.parse(Buffer.concat(bytes).toString());
  } catch {
    return refuse(400, "the body is not JSON");
  }
  turn = turn
    .then(() => (response.destroyed ? undefined : complete(body, response)))
    .catch((error) => refuse(error.status ?? 500, error.message, error.code));
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address();
  console.log(`http://127.0.0.1:${port}/v1`);
  if (portFile) writeFileSync(portFile, String(port));
});
