import Testing

@testable import Simulation

@Suite("Simulated fleets: command line")
struct SettingsTests {
  private func settings(_ arguments: String) throws(Settings.UsageError) -> Settings {
    try Settings(arguments.split(separator: " ").map(String.init))
  }

  @Test("without options, each kind of fleet has seven sizes")
  func defaults() throws {
    let runs = try settings("").runs
    #expect(runs.count == 42)
    #expect(runs.prefix(7).map(\.nodes) == [1, 2, 5, 10, 20, 50, 100])
    #expect(runs.prefix(7).allSatisfy { $0.routing == .random && $0.shared == nil })
    #expect(runs.last?.routing == .hash && runs.last?.shared == 4_000_000_000)
  }

  @Test("every option reaches the settings")
  func options() throws {
    let settings = try settings(
      "--nodes 3,4 --routing hash --shared 5G,none --memory 64K --lifetime none --latency 0.2 --shared-latency 0 --lease 3 --wait 4"
        + " --points 9 --lose 2@1..2.5 --lose shared@7 --purge a@b@3 --purge 12.5%@4 --seed 5 --json out --zipf 1.1 --objects 10"
        + " --requests 20 --rate 30 --sizes 1..2M")
    #expect(settings.nodes == [3, 4])
    #expect(settings.routings == [.hash])
    #expect(settings.shared == [5_000_000_000, nil])
    #expect(settings.json == "out")
    #expect(
      settings.zipf
        == Workload.Zipf(exponent: 1.1, objects: 10, requests: 20, rate: 30, smallest: 1, largest: 2_000_000))
    let fleet = settings.fleet
    #expect(fleet.memory == 64_000 && fleet.lifetime == nil && fleet.originLatency == 0.2 && fleet.sharedLatency == 0)
    #expect(fleet.leaseDuration == 3 && fleet.longestWait == 4 && fleet.pointsPerNode == 9 && fleet.seed == 5)
    #expect(fleet.losses == [.init(node: 2, from: 1, to: 2.5), .init(node: nil, from: 7, to: nil)])
    #expect(fleet.purges == [.init(selection: .object("a@b"), time: 3), .init(selection: .share(0.125), time: 4)])
    #expect(try self.settings("trace.csv --lease none").file == "trace.csv")
    #expect(try self.settings("-").file == "-")
  }

  @Test(
    "an invalid argument is refused with its name",
    arguments: [
      ("--bogus 1", "unknown option '--bogus'"), ("--seed", "--seed needs a value"), ("a b", "unexpected argument 'b'"),
      ("--nodes 0", "--nodes takes a number from 1 to 10000, not '0'"),
      ("--nodes 1,,2", "--nodes takes a number from 1 to 10000, not ''"),
      ("--routing both", "--routing takes random, hash or a list of both, not 'both'"),
      ("--memory 1KB", "--memory takes a number of bytes, such as 65536, 64K, 512M or 2G, not '1KB'"),
      ("--shared 99999999999G", "--shared takes a number of bytes, such as 65536, 64K, 512M or 2G, not '99999999999G'"),
      ("--lifetime -1", "--lifetime takes a number of seconds of at least 0, not '-1'"),
      ("--lease 0", "--lease takes a number of seconds above 0, not '0'"),
      ("--rate nan", "--rate takes a number of requests per second above 0, not 'nan'"),
      ("--lose 1@5..5", "--lose takes NODE@FROM..TO or shared@FROM..TO in seconds, with nodes from 0 on, not '1@5..5'"),
      ("--lose 100@5", "--lose names node 100, and no run has it"),
      ("--purge 101%@5", "--purge takes OBJECT@TIME or SHARE%@TIME in seconds, not '101%@5'"),
      ("--purge @5", "--purge takes OBJECT@TIME or SHARE%@TIME in seconds, not '@5'"),
      ("--sizes 0..5", "--sizes takes MIN..MAX in bytes, such as 2K..80K, not '0..5'"),
      ("--sizes 5..4", "--sizes takes MIN..MAX with MIN not above MAX"),
      ("--zipf 1 trace.csv", "--zipf has no effect on the trace 'trace.csv'"),
    ])
  func invalid(arguments: String, message: String) {
    let error = #expect(throws: Settings.UsageError.self) { try settings(arguments) }
    #expect(error?.description == message)
  }
}
