// See Explain.h.
#include "tools/driver/Explain.h"
#include "ir/Explanation.h"
#include "tools/driver/KernelTable.h"

#include "llvm/BinaryFormat/Magic.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <set>

using namespace mlir;
namespace json = llvm::json;

namespace gradc {
namespace {

void printHeading(llvm::StringRef topic, llvm::raw_ostream &out) { out << "== " << topic << "\n"; }

/// Keys in the order of the alphabet: the object's own is none.
std::set<llvm::StringRef> keysOf(const json::Object &object) {
  std::set<llvm::StringRef> keys;
  for (auto &[key, value] : object)
    keys.insert(key);
  return keys;
}

void printTopics(const json::Object &topics, llvm::raw_ostream &out) {
  for (llvm::StringRef topic : keysOf(topics)) {
    printHeading(topic, out);
    if (const json::Array *texts = topics.getArray(topic))
      for (const json::Value &text : *texts)
        out << text.getAsString().value_or("") << "\n";
    out << "\n";
  }
}

/// Everything that is one value; lists and the program have headings of their own.
void printValues(const json::Object &object, llvm::raw_ostream &out) {
  for (llvm::StringRef key : keysOf(object)) {
    const json::Value &value = *object.get(key);
    if (!value.getAsObject() && !value.getAsArray() && key != "exec")
      out << key << " " << value << "\n";
  }
}

void print(const json::Object &root, llvm::raw_ostream &out) {
  printHeading("flags", out);
  if (const json::Object *flags = root.getObject("flags"))
    printValues(*flags, out);
  printValues(root, out);
  out << "\n";
  if (const json::Object *topics = root.getObject("explain"))
    printTopics(*topics, out);
  printKernelTable(root, out);
  printHeading("commands", out);
  out << root.getString("exec").value_or("");
}

void write(const json::Value &metadata, bool asJson, llvm::raw_ostream &out) {
  if (asJson)
    out << metadata << "\n";
  else
    print(*metadata.getAsObject(), out);
}

} // namespace

bool isExecutableFile(llvm::StringRef path) {
  llvm::file_magic magic;
  if (llvm::identify_magic(path, magic))
    return false;
  switch (magic) {
  case llvm::file_magic::elf:
  case llvm::file_magic::elf_relocatable:
  case llvm::file_magic::elf_executable:
  case llvm::file_magic::elf_shared_object:
    return true;
  default:
    return false;
  }
}

Failure explainExecutable(const std::string &path, bool asJson, llvm::raw_ostream &out) {
  auto file = llvm::object::ObjectFile::createObjectFile(path);
  if (!file)
    return {Exit::userError,
            path + ": " + llvm::toString(file.takeError()) + "; name a compiled executable"};
  for (const llvm::object::SectionRef &section : file->getBinary()->sections()) {
    llvm::Expected<llvm::StringRef> name = section.getName();
    if (!name || *name != ".gradc.metadata") {
      llvm::consumeError(name.takeError());
      continue;
    }
    llvm::Expected<llvm::StringRef> contents = section.getContents();
    if (!contents)
      return {Exit::userError, path + ": " + llvm::toString(contents.takeError())};
    llvm::Expected<json::Value> parsed = json::parse(contents->rtrim('\0'));
    if (!parsed || !parsed->getAsObject())
      return {Exit::userError, path + ": damaged metadata; compile the model again"};
    write(*parsed, asJson, out);
    return {};
  }
  return {Exit::userError,
          path + ": holds no gradc metadata; name an executable that gradc compiled"};
}

void explainPlan(const Compiler &compiler, bool asJson, llvm::raw_ostream &out) {
  std::string metadata = compiler.metadata();
  write(llvm::cantFail(json::parse(metadata)), asJson, out);
}

} // namespace gradc
