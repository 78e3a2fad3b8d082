// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "sim/cli/verbs.h"
#include "sim/data/byte_tokenizer.h"

namespace meshwright::cli {
namespace {

struct TokenizeOptions {
  std::vector<std::string> inputs;
  std::string output;
};

Result<int> run_tokenize(const TokenizeOptions& o, bool json, const Environment& env) {
  TokenizeSummary summary;
  {
    ProgressLine line(env.interactive);
    MW_ASSIGN_OR_RETURN(
        summary, tokenize_files(o.inputs, o.output, [&](const TokenizeProgress& p) {
          line.show(fmt::format("{}: {} of {} bytes", p.input, p.bytes_done, p.bytes_total));
        }));
  }
  if (json) {
    print_json({{"schema_version", kOutputSchemaVersion},
                {"output", o.output},
                {"documents", summary.num_documents},
                {"tokens", summary.file.token_count},
                {"vocab_size", summary.file.vocab_size}});
  } else {
    fmt::print("{}: {} tokens of {} documents, vocabulary {}\n",
               o.output,
               summary.file.token_count,
               summary.num_documents,
               summary.file.vocab_size);
  }
  return 0;
}

}  // namespace

Verb tokenize_verb(CLI::App& app, const Environment& env) {
  Verb verb =
      make_verb(app,
                "tokenize",
                "Text (or .jsonl of prompt and response) to a token file, one token per byte");
  auto o = std::make_shared<TokenizeOptions>();
  verb.app->add_option("inputs", o->inputs, "Text files")->required();
  verb.app->add_option("-o,--output", o->output, "Token file to write")->required();
  verb.run = [o, json = verb.json, &env] { return run_tokenize(*o, *json, env); };
  return verb;
}

}  // namespace meshwright::cli
