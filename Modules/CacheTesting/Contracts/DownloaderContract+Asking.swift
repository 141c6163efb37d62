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

  /// All bytes of an answer to GET.
  static func bytes(of url: URL, from downloader: any Downloader) async throws -> Data {
    try await get(url, from: downloader).body.collect()
  }

  /// The error of an operation that must fail.
  static func failure(_ what: String, _ operation: () async throws -> Void) async throws -> CacheError {
    do {
      try await operation()
    } catch let error as CacheError {
      return error
    }
    throw ContractViolation("\(what) ended normally")
  }

  /// Loads head and body of `request`, which must end with one of these codes.
  static func expectFailure(
    _ what: String, of request: DownloadRequest, with codes: Set<CacheError.Code>, from downloader: any Downloader,
    within bound: Duration = .seconds(600)
  ) async throws {
    let error = try await withBound(bound, what) {
      try await failure(what) { _ = try await downloader.download(request).body.collect() }
    }
    let names = codes.map(\.rawValue).sorted().joined(separator: " or ")
    try ContractViolation.expect(codes.contains(error.code), "\(what): expected \(names), saw \(error.code.rawValue): \(error)")
    try ContractViolation.expect(error.url == nil, "\(what): the error names a URL, which is for those above to tell")
  }

  /// The same for a GET of what an origin is given to answer.
  static func expectFailure(
    _ what: String, answering answer: ContractAnswer, with codes: Set<CacheError.Code>, from downloader: any Downloader,
    _ origin: any ContractOrigin
  ) async throws {
    let url = try await origin.serve(answer)
    try await expectFailure(what, of: DownloadRequest(head: HTTPRequest(resource: url)), with: codes, from: downloader)
  }

  /// That an engine is of use after what was done to it.
  static func expectSound(_ downloader: any Downloader, _ origin: any ContractOrigin) async throws {
    let url = try await origin.serve(ContractAnswer(body: Data("sound".utf8)))
    try ContractViolation.expect(
      try await bytes(of: url, from: downloader) == Data("sound".utf8), "the next request got other bytes")
  }
}
