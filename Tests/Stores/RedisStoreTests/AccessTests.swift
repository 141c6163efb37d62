#if Redis
import CacheCore
import CacheTesting
import Foundation
import LocalRedis
import LoopbackOrigin
import Testing

@testable import RedisStore

@Suite("Redis store: URLs, credentials and settings")
struct AccessTests {
  private let key = CacheKey(resource: "https://example.com/a")

  private let patient = RedisCache.Configuration { ($0.timeout, $0.connectTimeout) = (.seconds(60), .seconds(60)) }

  private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

  @Test(
    "a URL of another form is refused by name",
    arguments: [
      ("http://localhost", "scheme 'http'"), ("redis://", "no host"), ("redis://localhost/first", "the number"),
      ("redis://localhost/-1", "the number"), ("unix:", "no path"), ("unix:///tmp/socket?db=x", "the number"),
    ])
  func invalid(text: String, part: String) throws {
    let error = #expect(throws: CacheError.self) { try RedisCache(url: url(text)) }
    #expect(error?.code == .invalidConfiguration)
    #expect(error?.reason.contains(part) == true, "\(error?.reason ?? "")")
  }

  @Test("a cluster without a server or with a database is refused", arguments: [[], ["redis://localhost/1"]])
  func invalidCluster(urls: [String]) throws {
    let error = #expect(throws: CacheError.self) { try RedisCache(cluster: urls.map { try url($0) }) }
    #expect(error?.code == .invalidConfiguration)
  }

  @Test(
    "an invalid setting is refused",
    arguments: [
      { $0.namespace = "" }, { $0.namespace = "a{b}" }, { $0.namespace = "a*" }, { $0.connections = 0 },
      { $0.connections = 65 }, { $0.timeout = .zero }, { $0.pendingCallLimit = 0 }, { $0.entrySizeLimit = -1 },
      { $0.staleRetention = .seconds(-1) }, { $0.replacedBodyRetention = .seconds(-1) }, { $0.connectTimeout = .zero },
      { $0.longestRetryInterval = .seconds(-1) },
    ] as [@Sendable (inout RedisCache.Configuration) -> Void])
  func invalidSetting(change: @Sendable (inout RedisCache.Configuration) -> Void) throws {
    let error = #expect(throws: CacheError.self) {
      try RedisCache(url: url("redis://localhost"), configuration: .init(change))
    }
    #expect(error?.code == .invalidConfiguration)
  }

  @Test("a fleet with a time that is too short is invalid", arguments: [Duration.zero, .seconds(-1)])
  func invalidFleet(time: Duration) async throws {
    let cache = try RedisCache(url: url("redis://localhost"))
    for fleet in [RedisFleet(cache, leaseDuration: time), RedisFleet(cache, memberTimeout: time)] {
      #expect(await failure { try fleet.validity.get() }?.code == .invalidConfiguration)
    }
    #expect(await failure { try RedisFleet(cache).validity.get() } == nil)
  }

  @Test("a missing certificate is refused when the cache is created")
  func missingCertificate() throws {
    let error = #expect(throws: CacheError.self) {
      try RedisCache(url: url("rediss://localhost"), configuration: .init { $0.tls.additionalRoots = ["/nonexistent.pem"] })
    }
    #expect(error?.code == .invalidConfiguration)
  }

  @Test("caches with the same server and namespace are equal components, and others are not")
  func identity() throws {
    let one = try RedisCache(url: url("redis://user:secret@localhost"))
    #expect(try RedisCache(url: url("redis://localhost:6379/0")).id == one.id)
    #expect(try RedisCache(url: url("redis://localhost/1")).id != one.id)
    #expect(try RedisCache(url: url("redis://localhost"), configuration: .init { $0.namespace = "b" }).id != one.id)
    #expect(!"\(one.id)".contains("secret"))
  }

  @Test(
    "a password and an ACL user are accepted, and wrong ones are an error without the password",
    .enabled(if: RedisServer.isInstalled))
  func credentials() async throws {
    let server = try await RedisServer()
    try server.run([
      "ACL", "SETUSER", "cache", "on", ">s3cret", "resetkeys", "~etagere:1:*", "-@all", "+auth", "+select", "+ping", "+info",
      "+scan", "+unlink", "+hget", "+hvals", "+hmget", "+hlen", "+hset", "+hdel", "+pexpire", "+pttl", "+zadd", "+zscan",
      "+zremrangebyscore", "+get", "+set", "+del", "+hgetall", "+hexists", "+xadd", "+xrange", "+time",
      "+eval", "+evalsha", "+script|load",
    ])
    try server.run(["ACL", "SETUSER", "default", "off"])
    let cache = try RedisCache(url: url("unix://cache:s3cret@localhost\(server.folder)/socket"), configuration: patient)
    try await cache.store(bytes(200_000), for: key, metadata: metadata(tags: "a"))
    #expect(try await cache.bytes(key) == bytes(200_000))
    #expect(try await cache.keys(tagged: "a").count == 1)
    let entry = try #require(await cache.entry(for: key, range: 0..<0))
    #expect(try await cache.updateMetadata(of: key, to: entry.metadata, ifRevision: entry.metadata.revision))
    try await cache.remove(key, ifRevision: nil)
    try await cache.store(bytes(200_000), for: key, metadata: metadata(tags: "a"))
    try await cache.removeAll()
    #expect(try await cache.bytes(key) == nil)
    let fleet = RedisFleet(cache, memberTimeout: .seconds(10))
    guard case .granted(let lease) = try await fleet.requestLease(of: key.resource, selection: "", lookedUpAt: nil) else {
      throw CacheError(.other, reason: "the lease was not granted")
    }
    _ = try await cache.makeWriter(for: key, metadata: metadata(), lease: lease).commit(trailers: nil)
    lease.endAsStored()
    let member = fleet.join(receive: { _, _ in }, missed: {})
    try await Polling.until { member.isCurrent }
    try await member.broadcast("a")
    await member.leave()
    await cache.close()

    let wrong = try RedisCache(url: url("unix://cache:wr0ng@localhost\(server.folder)/socket"), configuration: patient)
    let error = await failure { _ = try await wrong.entry(for: key) }
    #expect(error?.code == .storeUnavailable)
    #expect(error?.reason.contains("WRONGPASS") == true)
    #expect(error?.reason.contains("wr0ng") == false)
    await wrong.close()
  }

  @Test(
    "TLS verifies the server and presents a client certificate",
    .enabled(if: RedisServer.isInstalled && certificates != nil, "needs the certificates of Scripts/test --interop"))
  func tls() async throws {
    let folder = try #require(Self.certificates)
    let port = try ReservedPort()
    let server = try await RedisServer([
      "--tls-port", "\(port.number)", "--tls-cert-file", "\(folder)/server.pem", "--tls-key-file", "\(folder)/server.key",
      "--tls-ca-cert-file", "\(folder)/ca.pem", "--tls-auth-clients", "yes",
    ])
    let url = try url("rediss://localhost:\(port.number)")
    let cache = try RedisCache(
      url: url,
      configuration: .init {
        ($0.timeout, $0.connectTimeout) = (.seconds(60), .seconds(60))
        $0.tls.additionalRoots = ["\(folder)/ca.pem"]
        $0.tls.certificateChain = "\(folder)/client.pem"
        $0.tls.privateKey = "\(folder)/client.key"
      })
    try await cache.store(bytes(200_000), for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == bytes(200_000))
    await cache.close()

    let untrusting = try RedisCache(url: url)
    #expect(await failure { _ = try await untrusting.entry(for: key) }?.code == .storeUnavailable)
    await untrusting.close()
    withExtendedLifetime(server) {}
  }

  private static let certificates = ProcessInfo.processInfo.environment["ETAGERE_INTEROP_CERTIFICATES"]

  @Test(
    "the code of an error is found in the messages of Redis 6.2 and 7.0",
    arguments: [
      ("OOM command not allowed when used memory > 'maxmemory'.", .diskFull),
      ("ERR Error running script (call to f_1f): @user_script:9: @user_script: 9: -OOM command not allowed", .diskFull),
      ("READONLY You can't write against a read only replica.", .readOnly),
      ("ERR Error running script (call to f_1f): @user_script:1: -READONLY You can't write", .readOnly),
      ("WRONGTYPE Operation against a key holding the wrong kind of value script: 1f, on @user_script:8.", .unsupported),
      ("ERR Error running script (call to f_1f): @user_script:8: WRONGTYPE Operation against a key", .unsupported),
      ("ERR unknown command", .storeUnavailable),
    ] as [(String, CacheError.Code)])
  func codes(message: String, code: CacheError.Code) { #expect(RedisEngine.error(message).code == code) }

  @Test("a server without AUTH is an error without the password", .enabled(if: RedisServer.isInstalled))
  func withoutAuthentication() async throws {
    let server = try await RedisServer(["--rename-command", "AUTH", ""])
    let cache = try RedisCache(url: url("unix://cache:s3cret@localhost\(server.folder)/socket"), configuration: patient)
    let error = await failure { _ = try await cache.entry(for: key) }
    #expect(error?.code == .storeUnavailable)
    #expect(error?.reason.contains("does not accept the credentials") == true)
    #expect(error?.reason.contains("s3cret") == false)
    await cache.close()
  }

  @Test("databases of one server are separate", .enabled(if: RedisServer.isInstalled))
  func databases() async throws {
    let server = try await RedisServer()
    let (zero, one) = (
      try server.cache(), try RedisCache(url: url("unix://\(server.folder)/socket?db=1"), configuration: patient)
    )
    try await one.store(bytes(10), for: key, metadata: metadata())
    #expect(try await zero.bytes(key) == nil)
    #expect(try await one.bytes(key) == bytes(10))
    await zero.close()
    await one.close()
  }
}
#endif
