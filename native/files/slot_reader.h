// Reading a store entry whole, and proving that it is what its manifest says.
//
// This knows one spelling of a manifest: the canonical one, with plain paths. It says "valid" or
// nothing. Whatever it does not accept is looked at again by the store's own validator, which has
// the verdict and the reason; so nothing here needs to be said, only never to be wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pypto_native {

// Names and bounds of the store; Python passes its own, so that they are written down once.
struct SlotRules {
  std::string manifest_name;
  std::string signature_name;
  size_t manifest_limit;  // bytes
  size_t path_limit;      // bytes
  size_t keep_file;       // bytes: larger files are hashed and not kept
  size_t keep_total;      // bytes
};

// One file of the inventory. Views are into the manifest.
struct InventoryFile {
  std::string_view path;
  uint64_t size;
  std::string_view sha256;  // hexadecimal
  bool executable;
};

// What an entry's manifest says. Not copied: the views would be of another string.
struct SlotManifest {
  SlotManifest() = default;
  SlotManifest(const SlotManifest&) = delete;
  SlotManifest& operator=(const SlotManifest&) = delete;
  SlotManifest(SlotManifest&&) = delete;
  SlotManifest& operator=(SlotManifest&&) = delete;

  std::string text;
  std::string_view spec;  // the JSON of the specification, not parsed
  std::vector<InventoryFile> files;
};

struct KeptFile {
  std::string_view path;
  std::string content;
};

// Reads the manifest of the open directory `slot` into `manifest`. True if it is `head`, a list of
// plain files in strictly ascending order, `middle`, and something up to the end. The specification
// between is not looked at.
bool read_slot_manifest(int slot, std::string_view head, std::string_view middle,
                        const SlotRules& rules, SlotManifest& manifest);

// Whether the tree of the open directory `slot` is exactly the manifest's: every byte, every name,
// nothing else. The small files are kept, in the order of their paths.
bool check_payload(int slot, const SlotManifest& manifest, const SlotRules& rules,
                   std::vector<KeptFile>& kept);

// One file of the inventory, if it is there and what the manifest says, and not above `limit`.
std::optional<std::string> read_payload_file(int slot, const InventoryFile& file, size_t limit);

}  // namespace pypto_native
