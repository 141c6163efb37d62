internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// How stored bytes get to a caller who reads them as a stream.
extension TieredCache {
  /// Bytes to be read, and where they come from.
  struct Content {
    var body: ResourceBody
    var source: ResourceSource
  }

  /// The bytes of a stored answer that a reply has. Nil: they are gone, or can't be read.
  func content(of candidate: Candidate, _ content: StoredReply.Content) async throws(CacheError) -> Content? {
    if case .none = content { return Content(body: .none, source: isInMemory(candidate) ? .memory : .disk) }
    if let data = value(of: candidate, transform: "", as: Data.self) {
      return Content(body: content.body(of: data), source: .memory)
    }
    guard load.reads.contains(.disk), let store = load.store else { return nil }
    if let data = candidate.data {
      promote(data, candidate)
      return Content(body: content.body(of: data), source: .disk)
    }
    do throws(CacheError) {
      var range: Range<Int64>?
      if case .range(let asked) = content { range = asked }
      guard let entry = try await store.entry(for: candidate.key, range: range),
        entry.metadata.revision == candidate.metadata.revision
      else { return nil }
      guard range == nil, let length = entry.body.length, length <= load.maximumBodyInMemory else {
        return Content(body: entry.body, source: .disk)
      }
      let data = try await entry.body.collect(limit: length)
      promote(data, candidate)
      return Content(body: ResourceBody(data), source: .disk)
    } catch {
      if error.isCancellation { throw error }
      load.observe(.readFailed(resource: resource, error: error))
      return nil
    }
  }
}

extension StoredReply.Content {
  fileprivate func body(of data: Data) -> ResourceBody {
    switch self {
    case .none: return .none
    case .whole: return ResourceBody(data)
    case .range(let range):
      let clamped = range.clamped(to: 0..<Int64(data.count))
      // A copy of its own, which does not keep the whole alive.
      return ResourceBody(Data(data[data.startIndex + Int(clamped.lowerBound)..<data.startIndex + Int(clamped.upperBound)]))
    }
  }
}

extension ResourceBody {
  /// No bytes at all.
  static var none: ResourceBody { ResourceBody(Data()) }
}
