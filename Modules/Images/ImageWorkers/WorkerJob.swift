package import CacheCore

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// Work that a worker process can do. The job, the source and the result are sent from one process to another, so they contain
/// no reference.
package protocol WorkerJob: Codable, Sendable {
  /// The properties of the result beside its bytes.
  associatedtype Result: Codable & Sendable

  /// The name of the kind of job, without a line break.
  static var name: String { get }

  /// The time for the work. The pool shortens it to the time that is left when the work begins.
  var timeLimit: Duration { get set }

  /// The largest result in bytes. A worker that a file has taken over can send anything.
  var resultLimit: Int { get }

  /// Does the work in a worker.
  ///
  /// - Parameters:
  ///   - memoryLimit: The memory in bytes that the worker may use.
  func run(on source: Data, memoryLimit: Int) throws(CacheError) -> (Result, Data)
}

/// The lengths of the two parts of a message, which precede it: those of a JSON document and of bytes.
struct WorkerFrame {
  static let length = 16
  /// The limit of the document.
  static let documentLimit = 1 << 20

  var documentLength: Int
  var dataLength: Int

  /// - Parameter dataLimit: The limit of the bytes.
  init?(_ bytes: some Sequence<UInt8>, dataLimit: Int) {
    let bytes = Array(bytes)
    guard bytes.count == Self.length else { return nil }
    func number(_ part: ArraySlice<UInt8>) -> Int? { Int(exactly: part.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }) }
    guard let document = number(bytes[..<8]), let data = number(bytes[8...]), document <= Self.documentLimit,
      data <= dataLimit
    else { return nil }
    (documentLength, dataLength) = (document, data)
  }

  /// Returns the start of a message: the lengths and the document.
  static func start(_ document: Data, before data: Data) -> Data {
    var start = Data()
    for length in [document.count, data.count] {
      withUnsafeBytes(of: UInt64(length).littleEndian) { start.append(contentsOf: $0) }
    }
    return start + document
  }
}

/// The document of a worker's reply.
struct WorkerReply<Result: Codable & Sendable>: Codable, Sendable {
  struct Failure: Codable, Sendable {
    var code: String
    var reason: String
  }

  var failure: Failure?
  var result: Result?
  /// The resident memory of the worker after the job, in bytes.
  var residentBytes: Int
}
