import CacheCore
import Foundation

@testable import DiskStore

/// Fuzzes the file of an entry. The last byte selects the mode. Bit 0 is set if the checksums stay as they are. Usually they are
/// corrected, because nothing gets past a wrong one. Bits 1 and 2 select the size of the hole behind the bytes.
///
/// For any input, the result must be an entry or a reason, with little memory. An entry must return its own bytes, also after one
/// of them has changed.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzEntry(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  var bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let choice = bytes.popLast() else { return 0 }
  if choice & 1 == 0 { mendChecksums(&bytes) }
  let rooms = [0, 0, 140_000, 1 << 40]
  let file = FuzzedFile(bytes, room: rooms[Int(choice >> 1) & 3])
  guard case .entry(let entry) = file.find() else { return 0 }
  file.check(entry)
  FuzzedLog(bytes, entry)?.append(tearing: Int(choice >> 3))
  if !bytes.isEmpty { file.damage(at: (Int(choice) << 8 + count) % bytes.count, entry) }
  return 0
}

/// The file with the fuzzed bytes, reused for all inputs.
private struct FuzzedFile {
  private static let path = FileManager.default.temporaryDirectory.appending(path: "etagere-fuzz-\(getpid()).e").path
  private static let descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC, 0o600)

  let bytes: [UInt8]
  private let size: Int

  init(_ bytes: [UInt8], room: Int) {
    self.bytes = bytes
    size = bytes.count + room
    write(bytes)
  }

  private func write(_ bytes: [UInt8]) {
    let file = Self.descriptor
    precondition(
      ftruncate(file, 0) == 0 && pwrite(file, bytes, bytes.count, 0) == bytes.count && ftruncate(file, off_t(size)) == 0)
  }

  func find() -> EntryFile.Finding {
    let found = EntryFile.find(Self.path, expecting: nil, .system)
    switch found {
    case .entry, .newer: break
    case .damaged(let reason, let identity): precondition(!reason.isEmpty && identity != nil)
    case .nothing, .otherKey, .failed: preconditionFailure("\(found)")
    }
    return found
  }

  func check(_ entry: EntryFile) {
    precondition(entry.metadata.revision == entry.header.revision && entry.metadata.bodyLength == entry.bodyLength)
    precondition((200...999).contains(entry.metadata.response.status.code))
    let other = CacheKey(resource: entry.key.resource + "x", variant: entry.key.variant, transform: entry.key.transform)
    guard case .entry = EntryFile.find(Self.path, expecting: entry.key, .system),
      case .otherKey = EntryFile.find(Self.path, expecting: other, .system)
    else { preconditionFailure("the entry has another key") }
    _ = body(of: entry)
  }

  /// Returns the body after comparing it with the file's bytes, or `nil` if it is damaged.
  private func body(of entry: EntryFile) -> [UInt8]? {
    guard (try? entry.isBodyWhole()) == true else { return nil }
    let stored = padded(Int(entry.header.bodyOffset)..<Int(entry.header.bodyOffset) + Int(entry.bodyLength))
    if let data = entry.bodyInMemory(0..<entry.bodyLength) {
      precondition(data.elementsEqual(stored))
    } else {
      var read: [UInt8] = []
      while read.count < stored.count, let memory = try? entry.blocks(from: Int64(read.count)) {
        memory.withBytes { read.append(contentsOf: $0) }
      }
      precondition(read == stored)
    }
    return stored
  }

  /// Returns the file's bytes in a range, with zeros behind the given bytes.
  private func padded(_ range: Range<Int>) -> [UInt8] {
    let inside = range.clamped(to: 0..<bytes.count)
    return Array(bytes[inside]) + repeatElement(0, count: range.count - inside.count)
  }

  /// Checks that a changed byte is detected or lies outside the entry.
  func damage(at place: Int, _ entry: EntryFile) {
    let before = body(of: entry)
    var damaged = bytes
    damaged[place] ^= 0x10
    write(damaged)
    guard case .entry(let after) = find() else { return }
    precondition(after.header == entry.header && after.key == entry.key)
    precondition(after.withTable { Array($0) } == entry.withTable { Array($0) })
    precondition(after.newest.sequence <= entry.newest.sequence)
    let isInBody = entry.header.bodyOffset..<entry.header.bodyOffset + entry.header.bodyLength ~= UInt64(place)
    if before != nil { precondition((body(of: after) == nil) == isInBody) }
  }
}
