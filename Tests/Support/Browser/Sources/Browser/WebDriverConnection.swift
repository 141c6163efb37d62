#if AsyncHTTP
internal import AsyncHTTPNetworking
internal import CacheCore
internal import Foundation
internal import HTTPTypes

/// A connection for WebDriver commands: JSON over HTTP.
///
/// It does not use `URLSession`, which on Linux refuses chromedriver's header fields because they have no space after
/// the colon.
struct WebDriverConnection: Sendable {
  private struct Success<Value: Decodable>: Decodable { let value: Value }

  private struct Failure: Decodable {
    let error: String
    let message: String
  }

  /// An ignored result.
  struct Ignored: Decodable {
    init(from decoder: any Decoder) {}
  }

  private let authority: String
  private let downloader: AsyncHTTPDownloader

  /// - Parameter address: The `HOST:PORT` of chromedriver.
  init(_ address: String) {
    authority = address
    downloader = AsyncHTTPDownloader()
  }

  func get<Value: Decodable>(_ path: String, as type: Value.Type = Value.self) async throws -> Value {
    try await send(.get, path, nil)
  }

  func post<Value: Decodable>(
    _ path: String, _ body: [String: any Encodable], as type: Value.Type = Value.self
  ) async throws -> Value {
    try await send(.post, path, try JSONEncoder().encode(body.mapValues(EncodedArgument.init)))
  }

  /// Posts a command and ignores its result.
  func perform(_ path: String, _ body: [String: any Encodable] = [:]) async throws {
    _ = try await post(path, body, as: Ignored.self)
  }

  func delete(_ path: String) async throws { _ = try await send(.delete, path, nil) as Ignored }

  private func send<Value: Decodable>(_ method: HTTPRequest.Method, _ path: String, _ body: Data?) async throws -> Value {
    var fields = HTTPFields()
    fields[.contentType] = body.map { _ in "application/json; charset=utf-8" }
    let head = HTTPRequest(method: method, scheme: "http", authority: authority, path: "/\(path)", headerFields: fields)
    // A script may take minutes and has a separate time limit.
    let response = try await downloader.download(
      DownloadRequest(head: head, body: body.map { ResourceBody($0) }, idleTimeout: .seconds(600)))
    let data = try await response.body.collect()
    let command = "\(method) /\(path)"
    guard response.head.status == .ok else {
      guard let failure = try? JSONDecoder().decode(Success<Failure>.self, from: data).value else {
        throw BrowserError.unexpected(command: command, body: String(decoding: data, as: UTF8.self))
      }
      throw BrowserError.refused(command: command, code: failure.error, message: failure.message)
    }
    do {
      return try JSONDecoder().decode(Success<Value>.self, from: data).value
    } catch {
      throw BrowserError.unexpected(command: command, body: String(decoding: data, as: UTF8.self))
    }
  }
}

/// A value of any type in a JSON object or array.
struct EncodedArgument: Encodable {
  let value: any Encodable

  init(_ value: any Encodable) { self.value = value }

  func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
}
#endif
