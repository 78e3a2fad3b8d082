# Writes OUTPUT, a C++ source that holds every models/<folder>/*.json (run as a script: cmake -D... -P).
set(_body "// Made by cmake/EmbedDocuments.cmake from models/.\n#include \"sim/spec/builtin_documents.h\"\n\n")
string(APPEND _body "namespace meshwright {\nnamespace {\nstruct Document { std::string_view folder, name, text; };\n")
string(APPEND _body "constexpr Document kDocuments[] = {\n")
foreach(_folder fits hardware llm prices published workloads)
  file(GLOB _files ${MODELS}/${_folder}/*.json)
  list(SORT _files)
  foreach(_file ${_files})
    get_filename_component(_name ${_file} NAME_WLE)
    file(READ ${_file} _text)
    string(APPEND _body "    {\"${_folder}\", \"${_name}\", R\"mwdoc(${_text})mwdoc\"},\n")
  endforeach()
endforeach()
string(APPEND _body "};\n}  // namespace\n\n")
string(APPEND _body "std::optional<std::string_view> builtin_document(std::string_view folder, std::string_view name) {\n"
       "  for (const Document& d : kDocuments) {\n    if (d.folder == folder && d.name == name) return d.text;\n  }\n"
       "  return std::nullopt;\n}\n\n"
       "std::vector<std::string> builtin_names(std::string_view folder) {\n  std::vector<std::string> names;\n"
       "  for (const Document& d : kDocuments) {\n    if (d.folder == folder) names.emplace_back(d.name);\n  }\n"
       "  return names;\n}\n\n}  // namespace meshwright\n")
file(WRITE ${OUTPUT} "${_body}")
