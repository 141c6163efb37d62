import CacheCore
import CacheTesting
import Foundation
import HTTPTypes

/// A downloader with one flaw that the contract must find.
struct FlawedDownloader: Downloader {
  enum Flaw: String, CaseIterable {
    case dropsAByte, followsRedirects, throwsAtErrors, dropsConditions, endsShort, forgetsLength, ignoresCancellation, dropsFields
    case dropsRequestBodies, measuresNothing, neverResponds, sharesEverything
  }

  let sound: ScriptedDownloader
  let flaw: Flaw
  private let shared = SharedResponses()

  init(sound: ScriptedDownloader, flaw: Flaw) { (self.sound, self.flaw) = (sound, flaw) }

  var id: ComponentID { ComponentID(FlawedDownloader.self, parameters: flaw.rawValue) }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    var request = request
    if flaw == .dropsConditions { request.head.headerFields[.ifNoneMatch] = nil }
    if flaw == .dropsRequestBodies { request.body = nil }
    if flaw == .neverResponds { await Gate().pass() }
    if flaw == .sharesEverything { return try await shared.download(request, from: sound) }
    if flaw == .ignoresCancellation { return try await detached(request) }
    var response = try await sound.download(request)
    switch flaw {
    case .followsRedirects:
      if let location = response.head.headerFields[.location], let url = URL(string: location) {
        return try await sound.download(DownloadRequest(head: HTTPRequest(resource: url)))
      }
    case .throwsAtErrors:
      if response.head.status.code >= 400 { throw CacheError(.unacceptableStatus, reason: "\(response.head.status)") }
    case .dropsAByte, .endsShort:
      response.body = ResourceBody(length: response.body.length, source: FlawedSource(response.body.source, flaw))
    case .forgetsLength: response.body = ResourceBody(length: nil, source: response.body.source)
    case .dropsFields: response.head.headerFields[.eTag] = nil
    case .measuresNothing: response.metrics = { TransferMetrics() }
    case .dropsConditions, .ignoresCancellation, .dropsRequestBodies, .neverResponds, .sharesEverything: break
    }
    return response
  }

  /// A detached task does not receive the caller's cancellation.
  private func detached(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    let work = Task.detached { [sound] () -> Result<DownloadResponse, CacheError> in
      do throws(CacheError) {
        return .success(try await sound.download(request))
      } catch {
        return .failure(error)
      }
    }
    return try await work.value.get()
  }
}

/// One transfer per path, shared by all requests.
private actor SharedResponses {
  private var running: [String: Task<(HTTPResponse, Data), any Error>] = [:]

  func download(_ request: DownloadRequest, from sound: ScriptedDownloader) async throws(CacheError) -> DownloadResponse {
    let path = request.head.path ?? ""
    let task =
      running[path]
      ?? Task {
        let response = try await sound.download(request)
        return (response.head, try await response.body.collect())
      }
    running[path] = task
    do {
      let (head, body) = try await task.value
      return DownloadResponse(head: head, body: ResourceBody(body))
    } catch let error as CacheError {
      throw error
    } catch {
      throw .cancelled
    }
  }
}

private final class FlawedSource: ResourceBody.Source {
  private let sound: any ResourceBody.Source
  private let flaw: FlawedDownloader.Flaw
  private let isFirst = Lock(true)

  init(_ sound: any ResourceBody.Source, _ flaw: FlawedDownloader.Flaw) { (self.sound, self.flaw) = (sound, flaw) }

  func next() async throws(CacheError) -> Data? {
    if flaw == .endsShort { return try? await sound.next() }
    guard let chunk = try await sound.next() else { return nil }
    let isFirst = isFirst.withLock { first in
      defer { first = false }
      return first
    }
    guard isFirst else { return chunk }
    return chunk.count > 1 ? chunk.dropLast() : try await sound.next()
  }

  func cancel() { sound.cancel() }
  var trailers: HTTPFields? { nil }
}
