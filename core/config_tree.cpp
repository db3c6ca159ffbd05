#include "core/config_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <utility>

#include "core/error.h"
#include "core/lines.h"

namespace octavo {
namespace {

using Kind = ConfigNode::Kind;

/// Builds a ConfigNode from yaml-cpp's events. (yaml-cpp's own tree keeps the first of two equal
/// keys and does not tell.)
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string name, bool numbered) : name_(std::move(name)), numbered_(numbered) {}

  ConfigNode take() { return std::move(root_).value_or(ConfigNode{}); }
  std::string place(const YAML::Mark& mark) const {
    return numbered_ && mark.line >= 0 ? fmt::format("{}:{}", name_, mark.line + 1) : name_;
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_) refuse(mark, "a second document starts here ('---'); keep one");
  }
  void OnDocumentEnd() override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases ('*name') are not read; write the value out");
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (wants_key()) refuse(mark, "a key is missing before ':'");
    refuse_extras(mark, "", anchor);
    add(node(mark, Kind::null));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_extras(mark, tag, anchor);
    if (value.find('\0') != std::string::npos) refuse(mark, "a NUL (\\0) can stand in no setting");
    if (wants_key()) {
      set_key(mark, value);
      return;
    }
    ConfigNode scalar = node(mark, Kind::scalar);
    scalar.text = value;
    scalar.quoted = tag == "!";
    add(std::move(scalar));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Kind::list);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Kind::map);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    ConfigNode node;
    std::optional<std::pair<std::string, std::string>> key;  // of the next child: name, origin
  };

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& why) const {
    throw UserError(fmt::format("{}: {}", place(mark), why));
  }
  void refuse_extras(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != 0) refuse(mark, "anchors ('&name') are not read; write the value out");
    if (tag.size() > 1) refuse(mark, fmt::format("the tag {} is not read; leave it out", tag));
  }
  bool wants_key() const {
    return !open_.empty() && open_.back().node.kind == Kind::map && !open_.back().key;
  }

  void set_key(const YAML::Mark& mark, const std::string& name) {
    Frame& frame = open_.back();
    if (const ConfigNode* first = frame.node.find(name)) {
      std::string path;
      for (const Frame& f : open_)
        if (f.key) path += f.key->first + ".";
      refuse(mark, fmt::format("{}{} is set a second time, first at {}; keep one", path, name,
                               first->origin));
    }
    frame.key = {name, place(mark)};
  }

  // A value stands where its key stands: that is the line people look for.
  ConfigNode node(const YAML::Mark& mark, Kind kind) {
    ConfigNode n;
    n.kind = kind;
    n.origin = place(mark);
    if (!open_.empty() && open_.back().key) {
      n.key = open_.back().key->first;
      n.origin = open_.back().key->second;
    }
    return n;
  }
  void add(ConfigNode n) {
    if (open_.empty()) {
      root_ = std::move(n);
      return;
    }
    open_.back().node.children.push_back(std::move(n));
    open_.back().key.reset();
  }
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Kind kind) {
    refuse_extras(mark, tag, anchor);
    if (wants_key()) refuse(mark, "a key must be a plain name");
    open_.push_back({node(mark, kind), std::nullopt});
  }
  void close() {
    ConfigNode n = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(n));
  }

  std::string name_;
  bool numbered_;
  std::optional<ConfigNode> root_;
  std::vector<Frame> open_;
};

ConfigNode build_tree(const std::string& text, const std::string& name, bool numbered) {
  TreeBuilder builder(name, numbered);
  std::istringstream stream(text);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    const bool open_quote = e.msg == YAML::ErrorMsg::EOF_IN_SCALAR;
    throw UserError(fmt::format("{}: not valid YAML: {}", builder.place(e.mark),
                                open_quote ? "a quotation mark before it is never closed" : e.msg));
  }
  return builder.take();
}

ConfigNode parse(const std::string& text, const std::string& name, bool numbered) {
  // yaml-cpp notices a quotation mark that is never closed only if no line break follows.
  build_tree(text.substr(0, text.find_last_not_of(" \t\r\n") + 1), name, numbered);
  return build_tree(text, name, numbered);
}

}  // namespace

const ConfigNode* ConfigNode::find(std::string_view name) const {
  if (kind != Kind::map) return nullptr;
  const auto at = std::ranges::find(children, name, &ConfigNode::key);
  return at == children.end() ? nullptr : &*at;
}

ConfigNode parse_config(const std::string& text, const std::string& name) {
  if (const std::size_t bad = first_invalid_utf8(text); bad != text.size()) {
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n');
    throw UserError(fmt::format("{}:{}: not valid UTF-8; save the file as UTF-8", name, line));
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string::npos) {
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(nul), '\n');
    throw UserError(fmt::format("{}:{}: a NUL byte, so this is no file of settings", name, line));
  }
  ConfigNode root = parse(text, name, true);
  if (root.kind == Kind::scalar || root.kind == Kind::list)
    throw UserError(fmt::format("{}: expected 'name: value' lines", root.origin));
  root.origin = name;
  return root;
}

namespace {

/// The element of a list that "name[2]" means; null if the name has no such end.
/// @throws UserError  `list` is no list or not that long.
ConfigNode* element_of(ConfigNode& section, const std::string& name, const std::string& origin) {
  const std::size_t bracket = name.find('[');
  if (bracket == std::string::npos) return nullptr;
  const auto list = std::ranges::find(section.children, name.substr(0, bracket), &ConfigNode::key);
  std::size_t index = 0;
  const char* end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + bracket + 1, end, index);
  if (error != std::errc() || at + 1 != end || *at != ']' || list == section.children.end() ||
      list->kind != Kind::list || index >= list->children.size()) {
    throw UserError(
        fmt::format("{}: the file has no list element {}; they count from 0, and new "
                    "ones must be written into the file",
                    origin, name));
  }
  return &list->children[index];
}

}  // namespace

void set_value(ConfigNode& root, const std::string& assignment) {
  if (!is_valid_utf8(assignment))
    throw UserError(fmt::format("--set {}: not valid UTF-8", replace_invalid_utf8(assignment)));
  const std::string origin = "--set " + assignment;
  const std::size_t equals = assignment.find('=');
  if (equals == 0 || equals == std::string::npos)
    throw UserError(origin + ": write NAME=VALUE, e.g. --set trainer.max_updates=1000");
  ConfigNode value = parse(assignment.substr(equals + 1), origin, false);
  if (value.kind == Kind::map)
    throw UserError(origin + ": a section can't be set as a whole; set its settings one by one");

  ConfigNode* at = &root;
  const std::string path = assignment.substr(0, equals);
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    if (at->kind == Kind::scalar || at->kind == Kind::list)
      throw UserError(fmt::format("{}: {} is not a section ({})", origin, path.substr(0, begin - 1),
                                  at->origin));
    at->kind = Kind::map;
    const std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    if (ConfigNode* element = element_of(*at, name, origin)) {
      at = element;
      continue;
    }
    auto child = std::ranges::find(at->children, name, &ConfigNode::key);
    if (child == at->children.end()) {
      at->children.push_back({.origin = origin, .key = name, .text = {}, .children = {}});
      child = at->children.end() - 1;
    }
    at = &*child;
  }
  value.key = at->key;
  value.origin = origin;
  *at = std::move(value);
}

}  // namespace octavo
