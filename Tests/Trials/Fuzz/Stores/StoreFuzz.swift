import CacheCore
import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Fuzzes what stores read from a database, from a Redis server and from files, and what a load and a worker read. The first byte
/// selects the parser.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzStore(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let choice = bytes.first else { return 0 }
  let rest = Data(bytes.dropFirst())
  switch choice % 8 {
  case 0, 1: checkReply(rest, cut: Int(choice >> 3))
  case 2: checkValue(rest, isChunked: choice & 8 != 0, bodyCount: Int(choice >> 4) * 5)
  case 3: checkRow(rest)
  case 4: checkChunks(rest)
  case 5: checkManifest(rest)
  case 6: checkPartRecord(rest)
  default: checkFrame(rest, limit: Int(choice >> 3) * 100)
  }
  return 0
}

// MARK: Files

/// Checks that no entry of a manifest leads out of the folder, and that each valid one has a resource.
private func checkManifest(_ data: Data) {
  let manifest: Manifest
  do throws(CacheError) {
    manifest = try Manifest(data, "/folder/manifest.json")
  } catch {
    precondition(!error.reason.isEmpty && error.path == "/folder/manifest.json")
    return
  }
  precondition(manifest.version == Manifest.version)
  for entry in manifest.entries {
    if let parts = try? BundledFile.parts(entry.file, said: "/folder") {
      precondition(!parts.isEmpty)
      for part in parts {
        precondition(!["", ".", ".."].contains(part) && !part.utf8.contains { $0 == UInt8(ascii: "/") || $0 == 0 })
      }
    }
    guard let heads = try? entry.heads("/folder") else { continue }
    precondition(!heads.resource.isEmpty && heads.request.scheme != nil && heads.response.status == .ok)
    precondition(heads.response.headerFields.count <= entry.fields?.count ?? 0)
  }
}

/// Checks a record as it is and with a corrected checksum. A valid one must survive its stored form, and be about one request.
private func checkPartRecord(_ data: Data) {
  _ = PartRecord.decoded(data)
  let newline = UInt8(ascii: "\n")
  let line = data.prefix { $0 != newline } + [newline]
  let mended = line + withUnsafeBytes(of: line.withUnsafeBytes { crc32c($0) }.littleEndian) { Array($0) }
  guard let (record, count) = PartRecord.decoded(mended) else { return }
  precondition(count == mended.count && record.length > 0)
  guard let again = record.encoded().flatMap({ PartRecord.decoded($0) })?.record else { preconditionFailure("a record is lost") }
  precondition(again.plan == record.plan && again.described == record.described && again.permissions == record.permissions)
  let head = HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/a?b", headerFields: record.described)
  precondition(again.matches(head, for: "a") == record.matches(head, for: "a"))
  let request = DownloadRequest(head: head)
  let rest = record.plan.request(request, from: record.length - 1)
  precondition(rest.head.headerFields[.range] == "bytes=\(record.length - 1)-")
  // A new record of a response with the same fields.
  var fields = record.described
  fields[.contentLength] = "\(record.length)"
  let source = ClosedSource()
  let response = DownloadResponse(
    head: HTTPResponse(status: .ok, headerFields: fields), body: ResourceBody(length: record.length, source: source))
  guard let made = PartRecord(response, to: request, for: "a", now: Timestamp(seconds: 1_767_225_600)) else { return }
  precondition(made.matches(head, for: "a") && !made.matches(head, for: "b") && made.length == record.length)
  if let stored = made.encoded() { precondition(PartRecord.decoded(stored)?.record.plan == made.plan) }
}

private final class ClosedSource: ResourceBody.Source {
  var trailers: HTTPFields? { nil }
  func next() async throws(CacheError) -> Data? { nil }
  func cancel() {}
}

// MARK: Workers

private func checkFrame(_ data: Data, limit: Int) {
  struct Result: Codable, Sendable {
    var size: Int
    var name: String?
  }
  let start = data.prefix(WorkerFrame.length)
  if let frame = WorkerFrame(start, dataLimit: limit) {
    precondition((0...WorkerFrame.documentLimit).contains(frame.documentLength) && (0...limit).contains(frame.dataLength))
    let document = Data(count: frame.documentLength)
    precondition(WorkerFrame.start(document, before: Data(count: frame.dataLength)) == start + document)
  }
  guard let reply = try? JSONDecoder().decode(WorkerReply<Result>.self, from: data.dropFirst(WorkerFrame.length)) else { return }
  precondition(reply.failure?.code != nil || reply.failure == nil)
}
