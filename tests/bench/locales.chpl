// SPDX-License-Identifier: MIT
// The workloads of locales.h in Chapel, on its AtomicObject and EpochManager: a peer that Debian does not have. With a
// Chapel of 2020 (1.23, the first with these modules) that was built with CHPL_COMM=gasnet, CHPL_COMM_SUBSTRATE=smp:
//   chpl --fast locales.chpl && ./locales -nl 2 --what=mix|defer --every=1|1024|0 --count=OPERATIONS
// Prints the operations of all locales together per second. every: reclaim after so many; 0: at the end.
use AtomicObjects, EpochManager, Time, CyclicDist;

config const what = "mix", count = 1000, every = 1024, remote = 50;
const words = 1024;
class Thing { var a, b, c, d : uint; }
class Cell {
  var at = new AtomicObject(unmanaged Thing, hasABASupport=false, hasGlobalSupport=true);
  proc init() {
    complete();
    at.write(new unmanaged Thing());
  }
}

proc next(ref state : uint) : uint { // splitmix64
  state += 0x9E3779B97F4A7C15;
  var z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}
// Another locale in `remote` of 100 cases.
proc to(random : uint) : int {
  if (random % 100):int >= remote || numLocales == 1 then return here.id;
  return (here.id + 1 + ((random / 100) % (numLocales - 1):uint):int) % numLocales;
}

// Reads, writes, exchanges and compare-and-exchanges of global pointers to things, at random.
proc mix() {
  const D = {0..#numLocales * words} dmapped Cyclic(startIdx=0);
  var cells : [D] unmanaged Cell?;
  coforall loc in Locales with (ref cells) do on loc do
    for i in cells.localSubdomain() do cells[i] = new unmanaged Cell();
  var clock : Timer;
  clock.start();
  coforall loc in Locales with (ref cells) do on loc {
    var state = here.id:uint;
    var own = new unmanaged Thing();
    var seen = cells[here.id]!.at.read();
    for i in 1..count {
      const random = next(state);
      const cell = cells[((random >> 40) % words:uint):int * numLocales + to(random >> 8)]!;
      select random % 4 {
        when 0 do seen = cell.at.read();
        when 1 do cell.at.write(own);
        when 2 do seen = cell.at.exchange(own);
        otherwise cell.at.compareAndSwap(seen, own);
      }
    }
  }
  return clock.elapsed();
}

proc defer_() {
  var manager = new EpochManager();
  var clock : Timer;
  clock.start();
  coforall loc in Locales do on loc {
    var token = manager.register(), state = here.id:uint;
    for i in 1..count {
      const target = to(next(state));
      var made : unmanaged Thing?;
      on Locales[target] do made = new unmanaged Thing();
      token.pin();
      token.deferDelete(made!);
      token.unpin();
      if every > 0 && i % every == 0 then token.tryReclaim();
    }
  }
  manager.clear();
  return clock.elapsed();
}

const seconds = if what == "mix" then mix() else defer_();
writef("rate\t%r\n", count * numLocales / seconds);
