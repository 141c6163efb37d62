import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

/// The calls that load a resource.
enum LoadCall: CaseIterable, Sendable {
  case bytes, value, events, callback, file, prefetch, prefetchToDisk

  /// The parts of a result that every form reports.
  struct Result: Sendable {
    var text: String
    /// `nil` also for prefetches, which report counts.
    var fallbackReason: CacheError?
    var isUnconfirmed: Bool

    init<Value: Sendable>(_ resource: Resource<Value>, _ text: String) {
      (self.text, fallbackReason, isUnconfirmed) = (text, resource.fallbackReason, resource.validation == .failed)
    }
  }
}

extension ManagerFixture {
  /// Loads a request in the given form. The text of a prefetch is that of the stored response.
  func load(
    _ form: LoadCall, _ fields: HTTPFields = [:], _ options: RequestOptions = RequestOptions(), at url: URL? = nil
  ) async throws -> LoadCall.Result {
    let request = ResourceRequest(url ?? self.url, headerFields: fields, options: options)
    switch form {
    case .bytes:
      let resource = try await manager.load(request)
      return .init(resource, resource.text)
    case .value:
      let resource = try await manager.load(request, as: .counting(Counter()))
      return .init(resource, resource.value.lowercased())
    case .events:
      var final: Resource<Data>?
      for try await event in manager.events(for: request) { if case .final(let resource) = event { final = resource } }
      let resource = try #require(final)
      return .init(resource, resource.text)
    case .callback:
      let result = await withCheckedContinuation { continuation in
        _ = manager.load(request) { continuation.resume(returning: $0) }
      }
      let resource = try result.get()
      return .init(resource, resource.text)
    case .file:
      let folder = try DownloadFolder()
      let result = await Swift.Result { try await manager.load(request, to: folder.file()) }
      let content = folder.content()
      guard case .success(let resource) = result, let content else {
        #expect(content == nil)
        throw try #require(result.failure)
      }
      return .init(resource, String(decoding: content, as: UTF8.self))
    case .prefetch, .prefetchToDisk:
      let report = await manager.prefetch([request], into: form == .prefetch ? .cache : .disk)
      if let (_, error) = report.failed.first { throw error }
      var stored = request
      stored.options.policy = .cacheOnly
      let resource = try await manager.load(stored)
      var result = LoadCall.Result(resource, resource.text)
      result.isUnconfirmed = report.unconfirmed == 1
      return result
    }
  }

  /// Returns the error of a load that must fail.
  func failure(
    _ form: LoadCall, _ fields: HTTPFields = [:], _ options: RequestOptions = RequestOptions(), at url: URL? = nil
  ) async throws -> CacheError {
    do {
      let result = try await load(form, fields, options, at: url)
      throw ContractViolation("the load ended with \(result.text)")
    } catch let error as CacheError {
      return error
    }
  }

  /// Stores a response and lets it become stale.
  func storeStale(_ text: String = "old", cacheControl: String = "max-age=60", inMemory: Bool = true) async throws {
    network.respond(to: url, with: .ok(text, etag: "\"1\"", cacheControl: cacheControl))
    _ = try await manager.load(url)
    if !inMemory { restart() }
    clock.advance(by: .seconds(90))
  }
}

extension Result where Failure == any Error {
  var failure: (any Error)? { if case .failure(let error) = self { error } else { nil } }

  init(_ body: () async throws -> Success) async {
    do {
      self = .success(try await body())
    } catch {
      self = .failure(error)
    }
  }
}
