import CacheCore
import CacheManager
import CacheTesting
import CacheTransport
import Foundation
import HTTPTypes
import Testing

/// A resolver with the addresses that a test has given it.
private final class ScriptedResolver: HostResolver {
  let id = ComponentID.unique(ScriptedResolver.self)
  private let names: [String: [String]]
  private let gate: Gate?
  private let log = Lock<[String]>([])

  init(_ names: [String: [String]], gate: Gate? = nil) {
    self.names = names
    self.gate = gate
  }

  var asked: [String] { log.withLock { $0 } }

  func addresses(of host: String) async throws(CacheError) -> [IPAddress] {
    log.withLock { $0.append(host) }
    await gate?.pass()
    if Task.isCancelled { throw .cancelled }
    guard let addresses = names[host] else { throw CacheError(.hostNotFound, reason: "\(host) is not in the script") }
    return addresses.compactMap { IPAddress($0) }
  }
}

@Suite("Restricted addresses")
struct GuardTests {
  private let network = ScriptedDownloader()
  private let resolver = ScriptedResolver([
    "public.com": ["93.184.216.34", "2606:2800:220:1::1"], "mixed.com": ["93.184.216.34", "10.0.0.1"],
    "inside.com": ["192.168.1.1"], "xn--bcher-kva.example": ["192.168.1.1"],
    "six.com": ["fd00::1"], "meta.com": ["169.254.169.254"], "nowhere.com": [],
  ])

  private var downloader: some Downloader {
    network.restrictingAddresses(to: .publicOnly, resolver: resolver, clock: ManualClock())
  }

  @Test("a host with public addresses only is allowed")
  func allowed() async throws {
    network.serve(try TestRequest.url("http://public.com/a")) { _ in .ok("x") }
    let response = try await downloader.download(TestRequest.request("http://PUBLIC.com/a"))
    #expect(try await response.body.collect() == Data("x".utf8))
    #expect(resolver.asked == ["public.com"])
  }

  @Test(
    "a refused host gets no request",
    arguments: [
      ("http://inside.com/", CacheError.Code.addressRefused), ("https://mixed.com/", .addressRefused),
      ("http://six.com./", .addressRefused),
      ("http://meta.com/latest", .addressRefused), ("http://nowhere.com/", .hostNotFound), ("http://unknown.com/", .hostNotFound),
      ("http://127.0.0.1/", .addressRefused), ("http://127.1/", .addressRefused), ("http://0x7f000001/", .addressRefused),
      ("http://2130706433/", .addressRefused), ("http://[::ffff:7f00:1]/", .addressRefused),
      ("http://[::1]:80/", .addressRefused),
      ("http://127.0.0.1./", .addressRefused), ("http://public.com@127.0.0.1/", .addressRefused), ("http://0/", .addressRefused),
      ("http://[64:ff9b::7f00:1]/", .addressRefused), ("http://%31%32%37.0.0.1/", .addressRefused),
      ("http://１２７。0。0。1/", .addressRefused),
      ("http://%EF%BC%91%EF%BC%92%EF%BC%97.1/", .addressRefused), ("http://bücher.example/", .addressRefused),
      ("http://b%C3%BCcher.example/", .addressRefused),
      ("ftp://public.com/", .unsupportedScheme),
    ])
  func refused(_ text: String, _ code: CacheError.Code) async throws {
    let url = try TestRequest.url(text)
    let error = await failure { _ = try await downloader.download(DownloadRequest(head: HTTPRequest(resource: url))) }
    #expect(error?.code == code)
    #expect(network.requests.isEmpty)
  }

  @Test("a refused address may be excepted")
  func exceptions() async throws {
    network.serve(try TestRequest.url("http://inside.com/")) { _ in .ok("x") }
    let own = try #require(IPAddress("192.168.1.1"))
    let policy = AddressPolicy(refusing: .all, except: [own])
    _ = try await network.restrictingAddresses(to: policy, resolver: resolver).download(TestRequest.request("http://inside.com/"))
    #expect(network.requests.count == 1)
  }

  @Test(
    "the target of each redirect is checked",
    arguments: [
      "http://127.0.0.1/secret", "http://inside.com/", "//2130706433/", "http://public.com@[::1]/", "http://①②⑦.0.0.1/",
    ])
  func redirects(_ location: String) async throws {
    network.serve(try TestRequest.url("http://public.com/a")) { _ in .redirect(to: location) }
    let manager = ResourceManager(.init { $0.downloader = downloader })
    let url = try TestRequest.url("http://public.com/a")
    let code: CacheError.Code = location.contains("@") ? .redirectRefused : .addressRefused
    #expect(await failure { _ = try await manager.load(url) }?.code == code)
    #expect(network.requests.count == 1)
  }

  @Test("a redirect to a public host is followed")
  func goodRedirect() async throws {
    network.serve(try TestRequest.url("http://public.com/a")) { _ in .redirect(to: "https://public.com/b") }
    network.serve(try TestRequest.url("https://public.com/b")) { _ in .ok("there") }
    let manager = ResourceManager(.init { $0.downloader = downloader })
    #expect(try await manager.load(TestRequest.url("http://public.com/a")).data == Data("there".utf8))
    #expect(resolver.asked == ["public.com", "public.com"])
  }

  @Test("a name lookup ends at its time limit")
  func timeout() async throws {
    let clock = ManualClock()
    let gate = Gate()
    let slow = network.restrictingAddresses(
      to: .publicOnly, resolver: ScriptedResolver(["public.com": ["1.1.1.1"]], gate: gate), timeout: .seconds(3), clock: clock)
    for (own, limit) in [(nil, Duration.seconds(3)), (Duration.seconds(1), .seconds(1))] {
      let task = Task { try await slow.download(TestRequest.request("http://public.com/", timeout: own)) }
      await clock.sleepers(1)
      clock.advance(by: limit)
      #expect(await failure { _ = try await task.value }?.code == .timedOut)
    }
    #expect(network.requests.isEmpty)
  }

  @Test("a cancelled load does not wait for its name lookup")
  func cancelled() async throws {
    let gate = Gate()
    // The clock does not advance, so that the timeout cannot fire before the cancellation on a busy machine.
    let slow = network.restrictingAddresses(
      to: .publicOnly, resolver: ScriptedResolver(["public.com": ["1.1.1.1"]], gate: gate), clock: ManualClock())
    let task = Task { try await slow.download(TestRequest.request("http://public.com/")) }
    await gate.arrived()
    task.cancel()
    #expect(await failure { _ = try await task.value }?.isCancellation == true)
  }

  @Test("downloaders with equal policies, resolvers and engines are equal")
  func identity() throws {
    #expect(downloader.id == downloader.id)
    #expect(network.restrictingAddresses(to: .publicOnly).id == network.restrictingAddresses(to: .publicOnly).id)
    #expect(network.restrictingAddresses(to: .publicOnly).id != downloader.id)
    #expect(
      network.restrictingAddresses(to: .publicOnly).id != network.restrictingAddresses(to: AddressPolicy(refusing: .loopback)).id)
    let one = try #require(IPAddress("10.0.0.1"))
    #expect(
      network.restrictingAddresses(to: .publicOnly).id
        != network.restrictingAddresses(to: AddressPolicy(refusing: .all, except: [one])).id)
  }
}
