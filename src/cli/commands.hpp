// SPDX-License-Identifier: MIT
#pragma once
// The commands of `muster`; each gets the arguments after its name and returns the exit status.
#include <string>
#include <vector>

using Arguments = std::vector<std::string>;

int bench_command(const Arguments &arguments);
int broker_command(const Arguments &arguments);
int check_command(const Arguments &arguments);
int run_command(const Arguments &arguments);
int store_command(const Arguments &arguments);
int store_check_command(const Arguments &arguments);
int top_command(const Arguments &arguments);
int trace_command(const Arguments &arguments);
int transport_check_command(const Arguments &arguments, const std::string &program);
