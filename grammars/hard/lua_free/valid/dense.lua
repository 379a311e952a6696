localx=1functionf(a,b)ifa<bthenreturnaelseifa==bthenreturnnilelsereturnbendend
fori=1,10dox=x+f(i,x)or0end
fork,vinpairs{a=1;[2]=notx}doprint(k,v)endlocalt={f(1,2),f=3,#t,-x}gotodone
whilenotxdox=nilbreakend::done::repeatx=xand1untilx
return{f"one"'two'[[three]]{x=x}:four(),x}
