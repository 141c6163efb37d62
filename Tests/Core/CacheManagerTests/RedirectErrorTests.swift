import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Errors after a redirect")
struct RedirectErrorTests {
  /// The ways to load a resource.
  enum Loading: CaseIterable {
    case bytes, value, events, callback, file, prefetch, prefetchToDisk
  }

  let fixture: ManagerFixture
  let folder: DownloadFolder
  let target: URL

  init() throws {
    fixture = try ManagerFixture()
    folder = try DownloadFolder()
    target = try #require(URL(string: "https://b.example/y"))
    fixture.network.serve(fixture.url) { _ in .redirect(to: "https://b.example/y") }
  }

  private func failure(_ loading: Loading) async throws -> CacheError? {
    let (manager, url) = (fixture.manager, fixture.url)
    do {
      switch loading {
      case .bytes: _ = try await manager.load(url)
      case .value: _ = try await manager.load(url, as: TextTransformFixture().whole)
      case .events: for try await _ in manager.events(for: url) {}
      case .callback:
        let result = await withCheckedContinuation { continuation in
          _ = manager.load(url) { continuation.resume(returning: $0) }
        }
        _ = try result.get()
      case .file: _ = try await manager.load(url, to: folder.file())
      case .prefetch: return await manager.prefetch([url]).failed.first?.error
      case .prefetchToDisk: return await manager.prefetch([url], into: .disk).failed.first?.error
      }
      return nil
    } catch {
      return error
    }
  }

  @Test("the error names the requested URL and the failed URL, in every form of a load", arguments: Loading.allCases)
  func refused(_ loading: Loading) async throws {
    fixture.network.respond(to: target, with: .failure(.connectionRefused, reason: "connection refused"))

    let error = try #require(try await failure(loading))

    #expect(error.code == .connectionRefused)
    #expect(error.url == fixture.url.absoluteString && error.redirectTargets == ["https://b.example/y"])
    #expect(error.failedURL == "https://b.example/y")
    #expect("\(error)" == "\(fixture.url.absoluteString): redirected to https://b.example/y: connection refused")
  }

  @Test("the error names the redirect if the status is not accepted", arguments: [404, 503])
  func status(_ code: Int) async throws {
    fixture.network.respond(to: target, with: .response(.init(code: code)))

    let error = try await fixture.failure(fixture.url)

    #expect(error.status == code && error.url == fixture.url.absoluteString && error.failedURL == "https://b.example/y")
    #expect(
      error.description.hasPrefix("\(fixture.url.absoluteString): redirected to https://b.example/y: the server answered \(code)")
    )
  }

  @Test("the error names each redirect in order")
  func chain() async throws {
    let third = try #require(URL(string: "https://c.example/z"))
    fixture.network.respond(to: target, with: .redirect(to: "https://c.example/z", status: .temporaryRedirect))
    fixture.network.respond(to: third, with: .ok(Data(count: 1_000)).cut(after: 10))

    let error = try await fixture.failure(fixture.url)

    #expect(error.code == .truncatedBody)
    #expect(error.redirectTargets == ["https://b.example/y", "https://c.example/z"])
    #expect(
      error.description.hasPrefix(
        "\(fixture.url.absoluteString): redirected to https://b.example/y: redirected to https://c.example/z: "))
  }

  @Test("the error names the redirecting URL as the failed one if its redirect is not followed")
  func refusedRedirect() async throws {
    fixture.network.respond(to: target, with: .redirect(to: "ftp://c.example/z"))

    let error = try await fixture.failure(fixture.url)

    #expect(error.code == .redirectRefused && error.failedURL == "https://b.example/y")
  }

  @Test("the error names no redirect if the first request fails")
  func first() async throws {
    let url = try fixture.url("/other")
    fixture.network.respond(to: url, with: .failure(.connectionRefused, reason: "connection refused"))

    let error = try await fixture.failure(url)

    #expect(error.redirectTargets.isEmpty && error.failedURL == url.absoluteString)
    #expect("\(error)" == "\(url.absoluteString): connection refused")
  }

  @Test("the error names the redirect if the bytes cannot be made into a value")
  func undecodable() async throws {
    fixture.network.respond(to: target, with: .ok("a page"))
    let transform = TextTransformFixture().whole.map("fails") { (_: String) throws(CacheError) -> String in
      throw CacheError(.decodingFailed, reason: "not an image")
    }

    let error = await #expect(throws: CacheError.self) { _ = try await fixture.manager.load(fixture.url, as: transform) }

    #expect(error?.url == fixture.url.absoluteString && error?.failedURL == "https://b.example/y")
  }

  @Test("the error names the redirect if the response may not be stored")
  func unstorable() async throws {
    fixture.network.respond(to: target, with: .ok("bytes", cacheControl: "no-store"))

    let error = try #require(try await failure(.prefetchToDisk))

    #expect(error.code == .notCached && error.url == fixture.url.absoluteString && error.failedURL == "https://b.example/y")
  }

  @Test("the fallback reason names the redirect if a stale response is served")
  func stale() async throws {
    fixture.network.respond(
      to: target, with: .ok("stored", etag: "\"1\""), .failure(.connectionRefused, reason: "connection refused"))
    _ = try await fixture.manager.load(fixture.url)

    let resource = try await fixture.manager.load(fixture.url)

    #expect(resource.text == "stored" && resource.validation == .failed)
    #expect(
      resource.fallbackReason?.url == fixture.url.absoluteString && resource.fallbackReason?.failedURL == "https://b.example/y")
  }

  @Test("the fallback reason names the original if the stale response came from a mirror")
  func staleFromMirror() async throws {
    let url = try fixture.url("/mirrored")
    let mirror = try #require(URL(string: "https://mirror.example/"))
    fixture.network.serve(url) { _ in .failure(.connectionRefused) }
    fixture.network.respond(to: mirror, with: .ok("mirrored", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(url, options: RequestOptions { $0.alternatives = [.mirror(mirror)] })
    fixture.clock.advance(by: .seconds(61))

    let resource = try await fixture.manager.load(url)

    #expect(resource.text == "mirrored" && resource.url == mirror)
    #expect(resource.fallbackReason?.url == url.absoluteString && resource.fallbackReason?.redirectTargets == [])
  }

  @Test("the error names the redirects of each failed source")
  func alternatives() async throws {
    let mirror = try #require(URL(string: "https://mirror.example/"))
    let mirrored = try #require(URL(string: "https://mirror.example/y"))
    fixture.network.respond(to: target, with: .failure(.connectionRefused, reason: "connection refused"))
    fixture.network.respond(to: mirror, with: .redirect(to: "/y"))
    fixture.network.respond(to: mirrored, with: .response(.notFound))

    let error = try await fixture.failure(fixture.url, RequestOptions { $0.alternatives = [.mirror(mirror)] })

    let failures = (error.underlying as? FailureHistory)?.failures ?? []
    #expect(error.failedURL == "https://b.example/y")
    #expect(failures.map(\.url) == [fixture.url.absoluteString, mirror.absoluteString])
    #expect(failures.map(\.failedURL) == ["https://b.example/y", mirrored.absoluteString])
  }

  @Test(
    "the error contains no credential of a redirect's target",
    arguments: [
      "https://user:secret@b.example/y", "https://:secret@b.example/y", "https://b.example/y?signature=secret",
      "https://b.example/y#token=secret",
    ])
  func credentials(_ location: String) async throws {
    fixture.network.serve(fixture.url) { _ in .redirect(to: location) }
    for address in ["https://b.example/y", "https://b.example/y?signature=secret"] {
      fixture.network.serve(try #require(URL(string: address))) { _ in .failure(.connectionRefused) }
    }

    let error = try await fixture.failure(fixture.url)

    #expect(error.code == (location.contains("@") ? .redirectRefused : .connectionRefused))
    #expect(error.description.contains("redirected to https://b.example/y"))
    #expect(!error.description.contains("secret") && !"\(error.redirectTargets)".contains(":secret@"))
  }

  @Test("the error keeps the URL of another request that a downloader sent first")
  func otherRequest() async throws {
    let network = ClosureDownloader { seen throws(CacheError) in
      guard seen.head.authority == "b.example" else { return .redirect(to: "https://b.example/y", status: .found) }
      throw CacheError(.connectionRefused, reason: "connection refused", url: "https://tokens.example/")
    }

    let error = try await fixture.failure(fixture.url, RequestOptions { $0.downloader = .use(network) })

    #expect("\(error)" == "https://tokens.example/: connection refused")
  }
}
