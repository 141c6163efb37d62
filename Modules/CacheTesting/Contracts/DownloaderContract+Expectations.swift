internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension DownloaderContract {
  static func get(
    _ url: URL, _ fields: HTTPFields = [:], from downloader: any Downloader
  ) async throws -> DownloadResponse {
    try await downloader.download(
      DownloadRequest(head: HTTPRequest(resource: url, headerFields: fields)))
  }

  /// Returns the whole body of the response to a GET request.
  static func bytes(of url: URL, from downloader: any Downloader) async throws -> Data {
    try await get(url, from: downloader).body.collect()
  }

  /// Runs an operation that must end while `gate` holds back the rest of a response.
  ///
  /// A downloader that waits for the rest violates the statement. The time limit of the case then cancels the task, which opens
  /// the gate, so that the abandoned operation ends too.
  static func whileClosed<Value>(_ gate: Gate, _ operation: () async throws -> Value) async throws -> Value {
    try await withTaskCancellationHandler(operation: operation) { gate.open() }
  }

  /// Returns the error of an operation that must fail.
  static func failure(_ what: String, _ operation: () async throws -> Void) async throws -> CacheError {
    do {
      try await operation()
    } catch let error as CacheError {
      return error
    }
    throw ContractViolation("\(what) did not fail")
  }

  /// Loads the head and body of `request`, which must fail with one of the given codes.
  static func expectFailure(
    _ what: String, of request: DownloadRequest, with codes: Set<CacheError.Code>, from downloader: any Downloader,
    within bound: Duration = .seconds(600)
  ) async throws {
    let error = try await withBound(bound, what) {
      try await failure(what) { _ = try await downloader.download(request).body.collect() }
    }
    let names = codes.map(\.rawValue).sorted().joined(separator: " or ")
    try ContractViolation.expect(codes.contains(error.code), "\(what): expected \(names), saw \(error.code.rawValue): \(error)")
    try ContractViolation.expect(error.url == nil, "\(what): the error contains a URL, which the caller of a downloader adds")
  }

  /// Loads a GET request to which the origin sends `response`. The load must fail with one of the given codes.
  static func expectFailure(
    _ what: String, response: ContractResponse, with codes: Set<CacheError.Code>, from downloader: any Downloader,
    _ origin: any ContractOrigin
  ) async throws {
    let url = try await origin.serve(response)
    try await expectFailure(what, of: DownloadRequest(head: HTTPRequest(resource: url)), with: codes, from: downloader)
  }

  /// Checks that a downloader still works.
  static func expectSound(_ downloader: any Downloader, _ origin: any ContractOrigin) async throws {
    let url = try await origin.serve(ContractResponse(body: Data("sound".utf8)))
    try ContractViolation.expect(
      try await bytes(of: url, from: downloader) == Data("sound".utf8), "the next request received wrong bytes")
  }
}
