#if Tool
import Etagere
import Foundation
import Testing

@Suite("etagere: a command line that is wrong", .timeLimit(.minutes(30)))
struct UsageTests {
  @Test(
    "is told in one line with the status 64, and nothing is done",
    arguments: [
      (["get", "--bogus", "data:,a"], "Unknown option '--bogus'"),
      (["get"], "Missing expected argument"),
      (["got", "data:,a"], "2 unexpected arguments: 'got', 'data:,a'"),
      (["cache", "empty"], "Unexpected argument 'empty'"),
      (["get", "--header", "bad", "data:,a"], "--header takes 'Name: value', not 'bad'"),
      (["get", "--header", "b d: x", "data:,a"], "--header takes 'Name: value', not 'b d: x'"),
      (["get", "--timeout", "0", "data:,a"], "--timeout takes seconds between 0 and 86400"),
      (["get", "--timeout", "soon", "data:,a"], "The value 'soon' is invalid for '--timeout"),
      (["get", "--parallel", "0", "data:,a"], "--parallel takes a number from 1 to 256"),
      (["get", "--policy", "never", "data:,a"], "The value 'never' is invalid for '--policy"),
      (["get", "-o", "-", "data:,a", "data:,b"], "-o - takes one URL"),
      (["get", "--resize", "0x", "data:,a"], "The value '0x' is invalid for '--resize"),
      (["get", "--resize", "x", "data:,a"], "The value 'x' is invalid for '--resize"),
      (["get", "--resize", "4x^", "data:,a"], "The value '4x^' is invalid for '--resize"),
      (["get", "--resize", "99999x4", "data:,a"], "The value '99999x4' is invalid for '--resize"),
      (["get", "--format", "svg", "data:,a"], "The value 'svg' is invalid for '--format"),
      (["get", "--quality", "0", "data:,a"], "--quality takes a number from 1 to 100"),
      (["inspect"], "Missing expected argument"),
      (["demo", "--parallel", "65"], "--parallel takes a number from 1 to 64"),
    ])
  func usage(_ arguments: [String], _ reason: String) async throws {
    let place = try Workplace()
    let run = try await place.run(arguments)
    #expect(run.status == 64)
    #expect(run.lines.isEmpty)
    #expect(run.complaints.count == 1)
    #expect(run.complaints.first?.hasPrefix("etagere: \(reason)") == true)
    #expect(run.complaints.first?.hasSuffix("(see etagere --help)") == true)
    #expect(place.files(below: place.path).isEmpty)
  }

  @Test("a policy that does not exist is answered with those that do")
  func policies() async throws {
    let run = try await Workplace().run(["get", "--policy", "never", "data:,a"])
    for name in ["standard", "cache-first", "revalidate", "reload", "cache-only", "memory-else-reload", "stale-while-revalidate"]
    {
      #expect(run.complaints.first?.contains(name) == true)
    }
  }

  @Test("--help is no failure, and lists every exit status")
  func help() async throws {
    let run = try await Workplace().run(["--help"])
    #expect(run.status == 0)
    #expect(run.complaints.isEmpty)
    for number in [0, 1, 2, 3, 6, 7, 8, 18, 22, 23, 28, 37, 47, 56, 60, 63, 64, 80, 81, 82, 83, 84] {
      #expect(run.lines.contains { $0.drop { $0 == " " }.hasPrefix("\(number)  ") }, "\(number)")
    }
  }
}
#endif
