import AsyncHTTPNetworking
import CacheCore
import CacheTesting
import Foundation
import HTTPServing
import HTTPTypes
import Logging
import LoopbackOrigin
import NIOCore
import NIOPosix
import ServiceLifecycle
import Testing

@testable import Gallery
@testable import GatewayServer

/// A gallery on a free port, with a fast link.
struct GalleryFixture: Sendable {
  /// A response of the gallery.
  struct Response: Sendable {
    var status: Int
    var fields: HTTPFields
    var data: Data

    subscript(name: String) -> String? { HTTPField.Name(name).flatMap { fields[$0] } }
    var text: String { String(decoding: data, as: UTF8.self) }
    var cacheStatus: String { self["Cache-Status"] ?? "" }
  }

  let port: Int
  private let downloader: AsyncHTTPDownloader

  var url: URL {
    get throws { try #require(URL(string: "http://127.0.0.1:\(port)/")) }
  }

  static func run(
    _ change: (inout GallerySettings) -> Void = { _ in }, _ body: (GalleryFixture) async throws -> Void
  ) async throws {
    let downloader = try AsyncHTTPDownloader(
      configuration: .init { ($0.connectTimeout, $0.idleTimeout) = (.seconds(600), .seconds(600)) })
    var settings = GallerySettings(listen: HostAndPort(host: "127.0.0.1", port: 0), link: NetworkLink())
    change(&settings)
    let (ports, opened) = AsyncStream<Int>.makeStream()
    var service = GalleryService(settings: settings, group: MultiThreadedEventLoopGroup.singleton)
    service.shutdownIdleTime = .zero
    service.waitsForDisk = true
    service.onRunning = { opened.yield($0) }
    let group = ServiceGroup(services: [service], logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    let running = Task {
      defer { opened.finish() }
      try await group.run()
    }
    let port = await ports.first { _ in true }
    do {
      try await body(GalleryFixture(port: try #require(port), downloader: downloader))
    } catch {
      await group.triggerGracefulShutdown()
      _ = await running.result
      throw error
    }
    await group.triggerGracefulShutdown()
    try await running.value
  }

  func request(_ method: HTTPRequest.Method, _ path: String, fields: HTTPFields = [:]) async throws -> Response {
    let head = HTTPRequest(
      method: method, scheme: "http", authority: "127.0.0.1:\(port)", path: path, headerFields: fields)
    let response = try await downloader.download(DownloadRequest(head: head))
    return Response(
      status: response.head.status.code, fields: response.head.headerFields, data: try await response.body.collect())
  }

  func prepare(_ scenario: Scenario) async throws {
    let response = try await request(.post, "/runs/\(scenario.rawValue)")
    #expect(response.status == 204, "\(response.text)")
  }

  /// Loads all images at the same time, and returns the responses in the order of the wall.
  func load() async throws -> [Response] {
    try await withThrowingTaskGroup(of: (Int, Response).self) { group in
      for image in GalleryImage.all { group.addTask { (image.number, try await request(.get, image.path)) } }
      return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }.sorted { $0.key < $1.key }.map(\.value)
    }
  }

  /// Prepares a scenario and loads all images.
  func run(_ scenario: Scenario) async throws -> (responses: [Response], report: OriginReport) {
    try await prepare(scenario)
    let responses = try await load()
    return (responses, try await report())
  }

  /// The images that the cache has, by path.
  func lookups() async throws -> [String: CachedImage] {
    try JSONDecoder().decode([String: CachedImage].self, from: try await request(.get, "/runs/lookup").data)
  }

  func report() async throws -> OriginReport {
    try JSONDecoder().decode(OriginReport.self, from: try await request(.get, "/runs/report").data)
  }
}
