import CacheCore
import CacheManager
import Foundation
import HTTPTypes

/// The head and all bytes of a response.
struct ExchangeResult {
  var status: Int
  var fields: HTTPFields
  var text: String
  var cache: String
  var source: ResourceSource

  /// The field `Cache-Status`.
  var cacheField: String? { HTTPField.Name("Cache-Status").flatMap { fields[$0] } }
}

extension ManagerFixture {
  /// Returns a response whose body has not been read.
  func exchange(
    _ fields: HTTPFields = [:], _ method: HTTPRequest.Method = .get, path: String = "/image.png", sending text: String? = nil,
    options: RequestOptions = RequestOptions()
  ) async throws(CacheError) -> CachedResponse {
    let request = HTTPRequest(
      method: method, scheme: "https", authority: "example.com", path: path, headerFields: fields)
    return try await manager.respond(to: request, body: text.map { ResourceBody(Data($0.utf8)) }, options: options)
  }

  func send(
    _ fields: HTTPFields = [:], _ method: HTTPRequest.Method = .get, path: String = "/image.png", sending text: String? = nil,
    options: RequestOptions = RequestOptions()
  ) async throws -> ExchangeResult {
    let response = try await exchange(fields, method, path: path, sending: text, options: options)
    let data = try await response.body.collect()
    return ExchangeResult(
      status: response.head.status.code, fields: response.head.headerFields, text: String(decoding: data, as: UTF8.self),
      cache: response.status.description, source: response.source)
  }

  /// Sends many requests at once.
  func send(times count: Int, _ fields: @escaping @Sendable (Int) -> HTTPFields = { _ in [:] }) -> Task<
    [ExchangeResult], any Error
  > {
    Task {
      try await withThrowingTaskGroup(of: ExchangeResult.self) { group in
        for index in 0..<count { group.addTask { try await send(fields(index)) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
    }
  }
}
